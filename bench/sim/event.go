package sim

// event is something that happens to a request at an instant.
type event struct {
	at  int64
	seq uint64 // events of one instant happen in the order of their making
	do  action
	arg *request
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

func (e event) Before(o event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

// agenda has the events to come.
type agenda struct {
	heap[event]
	seq uint64
}

func (a *agenda) add(at int64, do action, r *request) {
	a.seq++
	a.push(event{at, a.seq, do, r})
}

// next is when the first event is due.
func (a *agenda) next() int64 {
	if len(a.heap) == 0 {
		return never
	}
	return a.heap[0].at
}
