package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

const (
	never = math.MaxInt64
	// epoch is the reading of the clock at the start of a run: instants are
	// positive, and windows that look back a minute find nothing there.
	epoch = int64(time.Hour)
)

// request is one try of a client.
type request struct {
	born  int64 // when the client sent it
	first int64 // when the client sent its first try
	left  int64 // processor time to go, until it waits or ends
	io    int64 // time to wait afterwards, which takes no processor
	due   float64
	class int
	tries int

	tenant int
	name   string  // of the tenant
	work   float64 // processor time that its tenant asked for
	core   int
	fate   fate
	held   algo.Lease
	gone   bool // it is over
}

func (r *request) Before(o *request) bool { return r.due < o.due }

// fate is the state of a request.
type fate uint8

const (
	fresh    fate = iota // the gate has not seen it
	admitted             // the gate let it in
	rejected             // the gate did not; the answer is to be written
	answered             // it has waited for its IO and has only the answer to write
)

// server is a model of a server.
type server interface {
	// arrive brings a request to the server's door.
	arrive(r *request)
	// wake goes on with a request that has waited for its IO.
	wake(r *request)
	// next is when the server does something by itself, and fire does it.
	next() int64
	fire()
	// freeze stops everything that runs, thaw goes on.
	freeze()
	thaw()
	// runnable is how many goroutines could run and do not.
	runnable() int
	// cpu is the processor time used until now, in nanoseconds.
	cpu() int64
}

// world is one run.
type world struct {
	Scenario
	now    int64
	rng    *rand.Rand // of clients and servers
	chance *rand.Rand // of the gate: its draws must not change the load
	agenda agenda
	server server
	gate   Gate
	stats  stats
	cost   costs
	procs  int
	crowd  *Crowd // nil without tenants

	outstanding int // requests that have been sent and have not ended
	connections int // open connections: idle ones are used again and kept open
}

// costs are the scenario's, in nanoseconds.
type costs struct{ admit, reject, answer int64 }

// The world is the machine that package adaptive sees.
var _ machine.Machine = (*world)(nil)

func (w *world) Now() int64                 { return epoch + w.now }
func (w *world) Runnable() (int, bool)      { return w.server.runnable(), !w.Blind }
func (w *world) CPU() (time.Duration, bool) { return time.Duration(w.server.cpu()), true }
func (w *world) Procs() int                 { return w.procs }
func (w *world) Quota() (float64, bool) {
	s, ok := w.Model.(Sharing)
	return s.Quota, ok && s.Quota > 0
}

// Goroutines is one for each connection.
func (w *world) Goroutines() (int, bool) { return w.connections, !w.Blind }
func (w *world) Rand() uint64            { return w.chance.Uint64() }

// run goes through the whole load.
func (w *world) run() {
	source := arrivals{load: w.Load, rate: w.Capacity() / 1e9, rng: w.rng, burst: w.Burst}
	end := int64(w.Load.End())
	arrival := int64(never)
	if w.Clients == 0 {
		arrival = source.next()
	}
	for range w.Clients {
		w.send(w.newRequest(0), 0)
	}
	for {
		at := min(arrival, w.server.next(), w.agenda.next())
		if at > end {
			w.now = end
			return
		}
		w.now = at
		switch at {
		case w.agenda.next():
			w.happen(w.agenda.pop())
		case arrival:
			for range max(w.Burst, 1) {
				w.send(w.newRequest(at), at)
			}
			arrival = source.next()
		default:
			w.server.fire()
		}
	}
}

// happen handles an event of the agenda.
func (w *world) happen(e event) {
	if e.arg != nil && e.arg.gone {
		return
	}
	switch e.do {
	case endWait:
		w.server.wake(e.arg)
	case timeOut:
		w.retry(e.arg.first, e.arg.class, e.arg.tries)
	case tryAgain:
		w.send(e.arg, w.now)
	case look:
		w.stats.limits = append(w.stats.limits, w.gate.limit())
		w.agenda.add(w.now+int64(lookEvery), look, nil)
	case freeze:
		w.server.freeze()
		length := w.Pauses.Shortest + time.Duration(w.rng.Float64()*float64(w.Pauses.Longest-w.Pauses.Shortest))
		w.agenda.add(w.now+int64(length), thaw, nil)
	case thaw:
		w.server.thaw()
		w.plan()
	case nextPeriod:
		w.server.(*sharing).refill()
		w.agenda.add(w.now+int64(quotaPeriod), nextPeriod, nil)
	}
}

// plan sets the next pause.
func (w *world) plan() {
	if w.Pauses.Every > 0 {
		w.agenda.add(w.now+int64(w.rng.ExpFloat64()*float64(w.Pauses.Every)), freeze, nil)
	}
}

// newRequest is the first try of a client.
func (w *world) newRequest(at int64) *request { return &request{first: at, class: w.classOf()} }

// classOf draws a class from the shares of the scenario.
func (w *world) classOf() int {
	if !w.Priorities {
		return 0
	}
	x := w.rng.Float64()
	for class, share := range classShares {
		if x -= share; x < 0 {
			return class
		}
	}
	return len(classShares) - 1
}

// send brings a request to the server.
func (w *world) send(r *request, at int64) {
	r.born = at
	r.left, r.io = w.Service.draw(w.rng)
	w.ofTenant(r, at)
	w.stats.arrive(w, r)
	w.outstanding++
	w.connections = max(w.connections, w.outstanding)
	if w.Retries > 0 && w.Patience > 0 {
		w.agenda.add(at+int64(w.Patience), timeOut, r)
	}
	w.server.arrive(r)
}

// admit asks the gate and sets the remaining cost of the request.
func (w *world) admit(r *request) bool {
	ok := w.gate.enter(r)
	if ok {
		r.fate = admitted
		r.left += w.cost.admit
	} else {
		r.fate, r.left, r.io = rejected, w.cost.reject, 0
	}
	w.stats.work += r.left
	return ok
}

// over ends a request that was answered or rejected.
func (w *world) over(r *request) {
	took := w.now - r.born
	late := w.Patience > 0 && took > int64(w.Patience)
	if r.fate == rejected {
		w.stats.at(r.born).rejected++
		if !late {
			w.retry(r.first, r.class, r.tries)
		}
	} else {
		w.gate.leave(r, late)
		w.stats.complete(w, r, took, late)
	}
	w.outstanding--
	r.gone = true
	if w.Clients > 0 {
		w.agenda.add(w.now+clientTurn, tryAgain, w.newRequest(w.now))
	}
}

// clientTurn is the time between an answer and the next request of a closed loop.
const clientTurn = int64(50 * time.Microsecond)

// retry sends a failed request again, after a backoff that doubles each time and varies
// by half.
func (w *world) retry(first int64, class, tries int) {
	if tries >= w.Retries {
		return
	}
	wait := float64(100*time.Millisecond) * math.Exp2(float64(tries)) * (0.5 + w.rng.Float64())
	w.agenda.add(w.now+int64(wait), tryAgain, &request{first: first, class: class, tries: tries + 1})
}
