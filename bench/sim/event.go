package sim

// event is something that happens to a request at an instant.
type event struct {
	at  int64
	seq uint64 // events of one instant happen in the order of their making
	do  action
	arg *request
	tag uint64 // the old arg.tag; another one means that the request is over
}

// action is the effect of an event.
type action uint8

const (
	endWait    action = iota // the request has waited for something other than the processor
	timeOut                  // its client gives up
	tryAgain                 // its client sends it once more
	look                     // the run takes a sample of the limit
	freeze                   // the process stops
	thaw                     // and goes on
	nextPeriod               // of the CFS quota
)

// agenda is a heap of events, four children to a node: it is shallow, and a
// node's children lie in one cache line or two.
type agenda struct {
	events []event
	seq    uint64
}

func (a *agenda) add(at int64, do action, r *request) {
	a.seq++
	e := event{at: at, seq: a.seq, do: do, arg: r}
	if r != nil {
		e.tag = r.tag
	}
	a.events = append(a.events, e)
	i := len(a.events) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.events[up]) {
			break
		}
		a.events[i] = a.events[up]
		i = up
	}
	a.events[i] = e
}

func (a *agenda) pop() event {
	first := a.events[0]
	n := len(a.events) - 1
	e := a.events[n]
	a.events = a.events[:n]
	for i := 0; n > 0; {
		least := 4*i + 1
		for c := least + 1; c < min(4*i+5, n); c++ {
			if a.events[c].before(&a.events[least]) {
				least = c
			}
		}
		if least >= n || !a.events[least].before(&e) {
			a.events[i] = e
			break
		}
		a.events[i] = a.events[least]
		i = least
	}
	return first
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// next is when the first event is due.
func (a *agenda) next() int64 {
	if len(a.events) == 0 {
		return never
	}
	return a.events[0].at
}
