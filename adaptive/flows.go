package adaptive

import "container/heap"

// flows orders the requests in a queue by class and tenant. A higher class goes first, and the tenants of
// a class take turns in proportion to their weights: self-clocked fair queueing (Golestani, INFOCOM
// 1994). Virtual time is the turn of the flow that was served last. A flow that begins goes after that by
// its own service, and each request that is served moves its turn on by as much. Turns do not change
// while others are served, so a request waits for at most one request of each other tenant beyond that
// tenant's share.
//
// A full queue drops the last request of the flow with the latest end, which includes the tenant's recent
// use.
type flows struct {
	byKey    map[flowKey]*flow
	first    flowHeap // by the turn of the next request
	last     flowHeap // by the turn of the last one, latest first
	now      float64  // virtual time
	arrivals uint64
	several  [classes]several
}

// several counts the flows of a class; since is when it last exceeded one.
type several struct{ flows, since int64 }

type flowKey struct {
	class  Class
	tenant string
}

// flow lists the requests of one class and tenant.
type flow struct {
	flowKey
	oldest, newest *waiter
	since          int64   // instant at which it last became nonempty
	turn           float64 // virtual time of its next request
	service, used  float64 // of a unit, and what its tenant has used of its share, in virtual time
	units          int64
	places         [2]int // in the heaps
}

// end returns the virtual time after all its requests and its tenant's recent use.
func (f *flow) end() float64 { return f.turn + f.service*float64(f.units) + f.used }

func newFlows() flows {
	return flows{byKey: map[flowKey]*flow{}, last: flowHeap{last: true}}
}

// push adds w to the flow of its class and tenant.
func (f *flows) push(key flowKey, w *waiter, a *arrival, at int64) {
	f.arrivals++
	w.arrival = f.arrivals
	one, waits := f.byKey[key]
	if waits {
		w.older, one.newest.newer = one.newest, w
	} else {
		one = &flow{flowKey: key, since: at, turn: f.now + a.turn*float64(w.n), oldest: w}
		f.byKey[key] = one
		if s := &f.several[key.class]; s.flows == 1 {
			s.since = at
		}
		f.several[key.class].flows++
	}
	one.newest, w.flow = w, one
	one.service, one.used, one.units = a.turn, a.used, one.units+w.n
	if !waits {
		heap.Push(&f.first, one)
		heap.Push(&f.last, one)
		return
	}
	f.moved(one)
}

// serve advances virtual time to the turn of w, which the caller then removes.
func (f *flows) serve(w *waiter) {
	f.now = max(f.now, w.flow.turn)
	w.flow.turn += w.flow.service * float64(w.n)
}

func (f *flows) remove(w *waiter) {
	one := w.flow
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		one.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		one.newest = w.older
	}
	w.older, w.newer = nil, nil
	one.units -= w.n
	if one.oldest != nil {
		f.moved(one)
		return
	}
	heap.Remove(&f.first, one.places[0])
	heap.Remove(&f.last, one.places[1])
	delete(f.byKey, one.flowKey)
	f.several[one.class].flows--
	if len(f.byKey) == 0 {
		f.now = 0
	}
}

func (f *flows) moved(one *flow) {
	heap.Fix(&f.first, one.places[0])
	heap.Fix(&f.last, one.places[1])
}

// lastWith returns the flow that has the last turn once a request joins the flow of key; nil if
// that is a new flow.
func (f *flows) lastWith(key flowKey, a *arrival) *flow {
	last, own, turn := f.last.all[0], f.byKey[key], a.turn*float64(a.n)
	end := f.now + turn + a.used
	if own != nil {
		end = own.end()
	}
	if key.class > last.class || key.class == last.class && end+turn >= last.end() {
		return own
	}
	return last
}

// standing reports whether the flow, or several flows of its class, had requests waiting at every
// moment of the last interval.
func (f *flows) standing(key flowKey, at, interval int64) bool {
	one, s := f.byKey[key], &f.several[key.class]
	return one != nil && at-one.since > interval || s.flows > 1 && at-s.since > interval
}

// flowHeap has the flow with the first turn on top, or the one with the last.
type flowHeap struct {
	all  []*flow
	last bool
}

func (h *flowHeap) Len() int { return len(h.all) }

func (h *flowHeap) Less(i, j int) bool {
	a, b := h.all[i], h.all[j]
	switch {
	case a.class != b.class:
		return (a.class < b.class) != h.last
	case h.last:
		return a.end() > b.end() || a.end() == b.end() && a.newest.arrival > b.newest.arrival
	}
	return a.turn < b.turn || a.turn == b.turn && a.oldest.arrival < b.oldest.arrival
}

func (h *flowHeap) Swap(i, j int) {
	h.all[i], h.all[j] = h.all[j], h.all[i]
	h.note(i)
	h.note(j)
}

func (h *flowHeap) Push(x any) {
	h.all = append(h.all, x.(*flow))
	h.note(len(h.all) - 1)
}

func (h *flowHeap) Pop() any {
	n := len(h.all) - 1
	one := h.all[n]
	h.all[n] = nil
	h.all = h.all[:n]
	return one
}

// note records a flow's place in the heap.
func (h *flowHeap) note(i int) {
	side := 0
	if h.last {
		side = 1
	}
	h.all[i].places[side] = i
}
