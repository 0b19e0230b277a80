package distributed

// Stats is what a store knows of itself at one moment, for people who watch it.
// How decisions were made is not counted here: every [algo.Decision] tells its
// Source.
type Stats struct {
	// State is that of the worst node.
	State State
	// Percent is the share of the calls that go to the worst node: 100 while it
	// is well, 0 while it is away, and between them on its way back.
	Percent int
	// Probing is set while somebody looks whether a node is back.
	Probing bool
	// Nodes is how many queues to nodes there are, and Away how many of them
	// are not closed. A cluster has sixteen, each for a part of the slots.
	Nodes, Away int
	// Instances is how many instances share the limits, as known now, at least
	// 1; each has an equal part of every limit while Redis is away. Counted is
	// false until they have been counted, or set by WithInstances.
	Instances int
	Counted   bool
	// Fallback is how limits decide while Redis is away.
	Fallback Fallback
	// Denied is how many denied keys the deny cache holds, proofs that have
	// expired and were not asked for since included, and DeniedMost about how
	// many it may; 0 if it is off.
	Denied, DeniedMost int
	// Blocks is how many keys are spent, or have lately been, from prepaid
	// blocks.
	Blocks int
}

// Stats returns a snapshot. It asks nobody and does not wait for Redis. Its
// parts are read one after another and may be a moment apart.
func (s *Store) Stats() Stats {
	known := s.registry.known()
	st := Stats{
		Percent:   whole,
		Instances: known.count, Counted: s.registry.last.Load() != nil,
		Fallback: s.fallback, DeniedMost: s.denyCache,
	}
	for _, l := range lanesOf(s.router) {
		st.add(&l.breaker)
	}
	for i := range s.denied.shards {
		st.Denied += s.denied.shards[i].len()
	}
	for _, l := range s.everyLimiter() {
		if l.blocks != nil {
			st.Blocks += l.blocks.len()
		}
	}
	return st
}

// add counts one node.
func (st *Stats) add(b *breaker) {
	b.mu.Lock()
	level, probing := int(b.level.Load()), b.probing
	b.mu.Unlock()
	st.Nodes++
	if level == whole {
		return
	}
	st.Away++
	st.Percent = min(st.Percent, level)
	st.Probing = st.Probing || probing
	switch {
	case level == 0:
		st.State = Open
	case st.State == Closed:
		st.State = Ramping
	}
}

// lanesOf returns the lanes that there are at the moment.
func lanesOf(r router) []*lane {
	switch r := r.(type) {
	case *oneRouter:
		return []*lane{r.only}
	case *slotRouter:
		return r.lanes[:]
	case *ringRouter:
		return r.all()
	}
	return nil
}

func (r *ringRouter) all() []*lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*lane, 0, len(r.lanes))
	for _, l := range r.lanes {
		all = append(all, l)
	}
	return all
}

func (s *denyShard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.proofs)
}

func (b *blocks) len() (n int) {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}
