package sim

// find is findRunnable of the runtime.
func (s *goSched) find(i int, c *goCore) *request {
	if c.turn%goFairness == 0 && len(s.global) > 0 {
		return s.global.pop()
	}
	if r := c.front; r != nil {
		c.front = nil
		s.waiting--
		return r
	}
	if len(c.local) > 0 {
		s.waiting--
		return c.local.pop()
	}
	if len(s.global) > 0 {
		return s.fromGlobal(c)
	}
	if len(s.kernel) > 0 {
		return s.poll(i)
	}
	return s.steal(i)
}

// fromGlobal moves a core's share of the global queue to its own.
func (s *goSched) fromGlobal(c *goCore) *request {
	n := min(len(s.global), len(s.global)/len(s.cores)+1, goLocal/2)
	first := s.global.pop()
	for range n - 1 {
		c.local.push(s.global.pop())
		s.waiting++
	}
	return first
}

// poll takes connections from the network; the newest of them runs. If other
// cores are idle the rest is spread over them, through the global queue.
func (s *goSched) poll(i int) *request {
	s.ready()
	rest := s.scratch
	first := rest[len(rest)-1]
	rest = rest[:len(rest)-1]
	for ; len(rest) > 0 && s.idle > 1 && len(s.global) < s.idle-1; rest = rest[:len(rest)-1] {
		s.global.push(rest[len(rest)-1])
	}
	for ; len(rest) > 0; rest = rest[:len(rest)-1] {
		s.put(&s.cores[i], rest[len(rest)-1])
	}
	return first
}

// ready reads up to 128 connections, the oldest first.
func (s *goSched) ready() {
	s.polled = s.w.now
	s.scratch = s.scratch[:0]
	for range min(len(s.kernel), goPolls) {
		s.scratch = append(s.scratch, s.kernel.pop())
	}
}

// put appends to a core's queue. A full queue first moves half to the global one.
func (s *goSched) put(c *goCore, r *request) {
	if len(c.local) == goLocal {
		for range goLocal / 2 {
			s.global.push(c.local.pop())
		}
		s.waiting -= goLocal / 2
	}
	c.local.push(r)
	s.waiting++
}

// steal takes half of the queue of the first core that has one, beginning
// anywhere.
func (s *goSched) steal(thief int) *request {
	if s.waiting == 0 {
		return nil
	}
	start := int(s.w.rng.Uint32N(uint32(len(s.cores))))
	for k := range s.cores {
		from := &s.cores[(start+k)%len(s.cores)]
		if len(from.local) == 0 {
			continue
		}
		n := len(from.local) - len(from.local)/2
		for range n - 1 {
			s.cores[thief].local.push(from.local.pop())
		}
		s.waiting--
		return from.local.pop()
	}
	return nil
}
