package pools

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

const (
	admitCost = int64(30 * time.Microsecond) // processor time of an admitted request
	denyCost  = int64(15 * time.Microsecond)
	failTime  = int64(time.Millisecond) // of a request that a full downstream turns away
	pollTime  = int64(30 * time.Second) // of a long poll
	pollAgain = int64(time.Second)      // after one that was denied
	origin    = int64(time.Hour)        // instants are positive
	goroutine = 10                      // beside those of connections
)

// Client says how the clients of a run behave.
type Client struct {
	Patience time.Duration
	Obeys    bool // handlers end when their client has left
}

// world is one run of a cell.
type world struct {
	*Cell
	Client
	now    int64
	rng    *rand.Rand
	agenda agenda
	seq    int
	gate   gate
	sleep  func(time.Duration) // nil: time is the world's alone

	conns    int
	slow     float64       // factor of the service time
	frozen   bool          // the pool serves nobody
	cpu      time.Duration // extra processor time of each request
	busy     int
	waiting  []*request
	runQueue []*request
	running  bool
	used     int64
	open     int // requests that have not ended
	most     int
	tally    *tally

	living map[*request]bool // admitted, and not ended
	remake func() gate       // a new process
	fuzz   func()            // nil: the limiter has no state of ours
}

// request is on its way through the service.
type request struct {
	born    int64
	service int64 // time of its connection; negative: it needs none, and takes so long
	poll    bool
	class   adaptive.Class
	tenant  string
	gone    bool // its client has given up
	inPool  bool
	ended   bool
	done    func(algo.Outcome)
	tally   *tally
}

var _ machine.Machine = (*world)(nil)

func (w *world) Now() int64                 { return origin + w.now }
func (w *world) Runnable() (int, bool)      { return len(w.runQueue) + 1, true }
func (w *world) Goroutines() (int, bool)    { return w.most + goroutine, true }
func (w *world) CPU() (time.Duration, bool) { return time.Duration(w.used), true }
func (w *world) Procs() int                 { return 1 }
func (w *world) Quota() (float64, bool)     { return 0, false }
func (w *world) Rand() uint64               { return w.rng.Uint64() }

type event struct {
	at  int64
	seq int
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}

func (w *world) after(d int64, do func()) {
	w.seq++
	heap.Push(&w.agenda, event{w.now + d, w.seq, do})
}

// run lets events happen until an instant.
func (w *world) run(until int64) {
	for len(w.agenda) > 0 && w.agenda[0].at <= until {
		e := heap.Pop(&w.agenda).(event)
		w.advance(e.at)
		e.do()
	}
	w.advance(until)
}

func (w *world) advance(to int64) {
	if w.sleep != nil && to > w.now {
		w.sleep(time.Duration(to - w.now))
	}
	w.now = to
}

// arrivals makes the requests of a phase.
func (w *world) arrivals(p *Phase, until int64) {
	rate := p.Load * w.capacity() / 1e9
	size := max(int(p.Burst.Seconds()*w.capacity()), 1)
	var next func()
	wait := func() int64 {
		if size > 1 { // bursts come at regular distances
			return int64(float64(size) / rate)
		}
		return int64(w.rng.ExpFloat64() / rate)
	}
	next = func() {
		for range size {
			w.arrive(w.newRequest())
		}
		if d := wait(); w.now+d < until {
			w.after(d, next)
		}
	}
	if rate > 0 {
		w.after(wait(), next)
	}
}

// newRequest is one of an even mix: one in ten is Critical, and nine tenants send alike but for
// the first, which sends as much as all others.
func (w *world) newRequest() *request {
	r := &request{service: w.draw(), class: adaptive.Sheddable}
	if w.rng.IntN(10) == 0 {
		r.class = adaptive.Critical
	}
	if n := w.rng.IntN(16); n < 8 {
		r.tenant = string(rune('a' + n))
	}
	return r
}

// draw is the service time of a request.
func (w *world) draw() int64 {
	x := w.rng.Float64()
	switch {
	case x < w.Hits:
		return -int64(w.HitTime)
	case x < w.Hits+w.Hang:
		return math.MinInt64
	}
	s := float64(w.Service)
	if w.Times > 0 { // two classes; Service is the mean of both
		s /= 1 + w.Slow*(w.Times-1)
		if w.rng.Float64() < w.Slow {
			s *= w.Times
		}
		return max(int64(s), 1)
	}
	if w.CV > 0 {
		sigma := math.Sqrt(math.Log(1 + w.CV*w.CV))
		s *= math.Exp(sigma*w.rng.NormFloat64() - sigma*sigma/2)
	}
	return max(int64(s), 1)
}

func (w *world) arrive(r *request) {
	r.born, r.tally = w.now, w.tally
	if !r.poll {
		r.tally.arrived(r, w.now)
	}
	w.open++
	w.most = max(w.most, w.open)
	w.runQueue = append(w.runQueue, r)
	if !r.poll {
		w.after(int64(w.Patience), func() { w.giveUp(r) })
	}
	w.process()
}

// process runs the next goroutine.
func (w *world) process() {
	if w.running || len(w.runQueue) == 0 {
		return
	}
	r := w.runQueue[0]
	w.runQueue = w.runQueue[1:]
	w.running = true
	cost := denyCost
	if r.gone {
		w.open--
		w.gate.gone()
	} else if r.done = w.gate.enter(r); r.done != nil {
		w.living[r] = true
		cost = admitCost + int64(w.cpu)
	} else {
		w.deny(r)
	}
	w.used += cost
	w.after(cost, func() {
		w.running = false
		if r.done != nil && !r.ended {
			w.work(r)
		}
		w.process()
	})
}

func (w *world) deny(r *request) {
	w.open--
	if r.poll {
		w.after(pollAgain, func() { w.arrive(&request{poll: true}) })
		return
	}
	r.tally.denied(r.born)
}

// work begins the part of a request beyond the processor.
func (w *world) work(r *request) {
	switch {
	case r.poll:
		w.after(pollTime, func() {
			w.end(r, algo.Succeeded)
			w.arrive(&request{poll: true})
		})
	case r.service == math.MinInt64: // it hangs until its client gives up, or 10 s
		w.after(int64(10*time.Second), func() { w.end(r, algo.Failed) })
	case r.service < 0:
		w.after(-r.service, func() { w.end(r, algo.Succeeded) })
	case w.Queue > 0 && len(w.waiting) >= w.Queue:
		w.after(failTime, func() { w.end(r, algo.Failed) })
	default:
		w.waiting = append(w.waiting, r)
		w.serve()
	}
}

// serve gives free connections to those that wait.
func (w *world) serve() {
	for len(w.waiting) > 0 && (w.busy < w.conns || w.conns == 0) && !w.frozen {
		r := w.waiting[0]
		w.waiting = w.waiting[1:]
		if r.ended {
			continue
		}
		w.busy++
		r.inPool = true
		w.after(int64(float64(r.service)*w.slow), func() { w.leave(r, algo.Succeeded) })
	}
}

// leave frees the connection of r.
func (w *world) leave(r *request, o algo.Outcome) {
	if !r.inPool {
		return
	}
	r.inPool = false
	w.busy--
	w.end(r, o)
	w.serve()
}

func (w *world) giveUp(r *request) {
	if r.ended {
		return
	}
	r.gone = true
	if r.done == nil || !w.Obeys {
		return
	}
	if r.inPool {
		w.leave(r, algo.Failed|algo.Untimed)
		return
	}
	w.end(r, algo.Failed|algo.Untimed)
}

func (w *world) end(r *request, o algo.Outcome) {
	if r.ended {
		return
	}
	r.ended = true
	delete(w.living, r)
	w.open--
	switch {
	case r.gone && w.Timeout:
		o = algo.Failed
	case r.gone:
		o = algo.Failed | algo.Untimed
	}
	r.done(o)
	if !r.poll && o == algo.Succeeded && w.now-r.born <= int64(w.SLO) {
		r.tally.good(r)
	}
}
