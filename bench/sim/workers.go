package sim

// Workers is a server with one worker per core. Workers take requests in the order of
// arrival and serve each to its end. The gate is asked on
// arrival; a rejection delays the request that a worker begins next.
//
// The waiting requests are runnable.
type Workers struct{}

// Remote is a service whose work is done elsewhere: by a pool of as many workers
// as the scenario has cores, in another machine. The service's own processor has
// only the cost of admitting and rejecting, and nothing in it is ever runnable.
type Remote struct{}

type workers struct {
	w      *world
	remote bool
	speed  float64
	idle   int
	queue  ring
	busy   jobs  // by their end
	debt   int64 // processor time of rejections that no worker has spent yet
	used   int64 // by ended work
	halted int64 // begin of the pause
	paused bool
	later  []*request // arrived, or had waited, during the pause
}

func newWorkers(w *world, remote bool) *workers {
	return &workers{w: w, remote: remote, speed: 1 - w.Neighbour, idle: w.Procs()}
}

func (p *workers) arrive(r *request) {
	if p.paused {
		p.later = append(p.later, r)
		return
	}
	p.begin(r)
}

func (p *workers) begin(r *request) {
	if !p.w.admit(r) {
		p.used += r.left
		if !p.remote {
			p.debt += r.left
		}
		p.w.over(r)
		return
	}
	if p.remote {
		p.used += p.w.cost.admit
		r.left -= p.w.cost.admit
	}
	p.queue.push(r)
	p.start()
}

// start gives work to idle workers.
func (p *workers) start() {
	for p.idle > 0 && p.queue.n > 0 {
		r := p.queue.pop()
		p.idle--
		if !p.remote {
			p.used += r.left
		}
		r.due = float64(p.w.now) + float64(r.left+p.debt)/p.speed
		p.debt = 0
		p.busy.push(r)
	}
}

func (p *workers) next() int64 {
	if p.paused || len(p.busy) == 0 {
		return never
	}
	return max(int64(p.busy[0].due), p.w.now)
}

func (p *workers) fire() {
	r := p.busy.pop()
	p.idle++
	if r.io > 0 {
		p.w.agenda.add(p.w.now+r.io, endWait, r)
	} else {
		p.w.over(r)
	}
	p.start()
}

func (p *workers) wake(r *request) {
	if p.paused {
		p.later = append(p.later, r)
		return
	}
	p.w.over(r)
}

func (p *workers) freeze() { p.paused, p.halted = true, p.w.now }

func (p *workers) thaw() {
	p.paused = false
	for _, r := range p.busy {
		r.due += float64(p.w.now - p.halted)
	}
	for _, r := range p.later {
		if r.fate == fresh {
			p.begin(r)
		} else {
			p.w.over(r)
		}
	}
	p.later = p.later[:0]
}

func (p *workers) runnable() int {
	if p.remote {
		return 0
	}
	return p.queue.n
}

// cpu counts begun work, less its remaining part.
func (p *workers) cpu() int64 {
	used := p.used
	if p.remote {
		return used
	}
	now := p.w.now
	if p.paused {
		now = p.halted
	}
	for _, r := range p.busy {
		used -= int64((r.due - float64(now)) * p.speed)
	}
	return used
}

// ring is a queue that grows.
type ring struct {
	items   []*request
	head, n int
}

func (q *ring) push(r *request) {
	if q.n == len(q.items) {
		q.grow()
	}
	q.items[(q.head+q.n)&(len(q.items)-1)] = r
	q.n++
}

func (q *ring) pop() *request {
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
	return r
}

func (q *ring) grow() {
	bigger := make([]*request, max(2*len(q.items), 16))
	for i := range q.n {
		bigger[i] = q.items[(q.head+i)&(len(q.items)-1)]
	}
	q.items, q.head = bigger, 0
}
