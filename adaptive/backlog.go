package adaptive

import (
	"math"

	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// Default is the strategy for a server about which nothing is known: the lower
// of [NewRunQueue], for the processor, and a limit on what is in flight for
// everything else that work can wait for: a database, another service, a pool,
// a lock.
//
// The second one stays out of the way until successes take four times as long
// as they usually do, with no queue in front of the processor to explain it, or
// until nothing completes for 1 s and five times the usual time. Then it allows
// twice what completes in the usual time (Little's law). It ends 1 s after the
// last sign of that, and when at least 85 % of what comes finds a place. If work
// still takes more than three times the usual time although no more is in flight,
// then it is not a queue that makes it slow, and the new time is the usual one.
//
// Options: [WithTarget]; an error in it is reported by [New]. A strategy belongs to
// one [Limiter]. For other combinations there is [Min].
func Default(opts ...Option) Strategy {
	q, err := configureRunQueue("Default", opts)
	if err != nil {
		return misconfigured{Fixed(1), err}
	}
	return Min(q, newBacklog(q.queues))
}

// misconfigured is a strategy whose constructor could not return its error.
type misconfigured struct {
	Strategy
	err error
}

func (m misconfigured) check() error { return m.err }

const (
	backlogEnter    = 4.0 // times the usual response time
	backlogStays    = 3.0
	backlogHeadroom = 2.0
	backlogLeast    = 4                                         // lowest limit
	backlogBatch    = 20.0                                      // successes over which the response time is smoothed
	backlogFits     = 0.85                                      // share of the arrivals that get a place when the load fits again
	backlogSpan     = time.Second                               // over which rates are measured
	backlogSamples  = 100                                       // that make a usual time
	backlogSmooth   = float64(100e6)                            // ns, of the response time
	backlogForgets  = float64(time.Minute)                      // of the usual time, upwards
	backlogPatience = int64(backlogSpan + 100*time.Millisecond) // no rate from before is left
	slowAnswers     = "responses take four times as long as usual"
)

// backlog limits what is in flight to what completes in the usual time, while
// work takes far longer than that and the processor is not why.
type backlog struct {
	excused func() bool // whether the processor explains long times
	rates   *Window

	word      atomic.Int64 // the limit in force
	next      atomic.Int64 // when to look again
	lastEnd   atomic.Int64
	busySince atomic.Int64
	entered   atomic.Uint64 // admissions
	turned    atomic.Uint64 // denials for want of a place
	took      bucket        // successes since the last look
	fresh     bucket        // successes that began since within
	within    atomic.Int64  // since when no more than the limit was in flight; never while more is

	mu      sync.Mutex // guards what follows
	looked  int64
	rt      float64 // smoothed response time, ns
	usual   float64 // ns, 0: unknown
	samples int64   // of the batch that may make a new usual time
	sum     int64
	before  [2]uint64 // admissions and denials at the last look
	fits    float64   // smoothed share of the arrivals that get a place
	rate    float64   // last known
	until   int64     // when the overload ends, if nothing renews it
	over    bool
	cause   string
}

func newBacklog(excused func() bool) *backlog {
	at := now()
	b := &backlog{excused: excused, rates: newWindow(backlogSpan, 20, fewestSamples, at), looked: at, fits: 1}
	b.word.Store(noLimit)
	b.within.Store(math.MaxInt64)
	return b
}

func (b *backlog) Limit() int { return int(b.word.Load()) }

func (b *backlog) admitted(at, n, inFlight int64) {
	b.entered.Add(1)
	if inFlight <= n {
		b.busySince.Store(at)
	}
	b.look(at, inFlight)
}

func (b *backlog) finished(at, inFlight int64) {
	b.lastEnd.Store(at)
	b.look(at, inFlight)
}

func (b *backlog) denied(by cause) {
	if by == byLimit {
		b.turned.Add(1)
	}
}

func (b *backlog) Observe(s Sample) {
	if s.Outcome != algo.Succeeded {
		return
	}
	b.rates.addAt(s.end(), int64(s.RTT))
	b.took.n.Add(1)
	b.took.sum.Add(int64(s.RTT))
	if s.end()-int64(s.RTT) >= b.within.Load() {
		b.fresh.n.Add(1)
		b.fresh.sum.Add(int64(s.RTT))
	}
}

// look finds out whether work waits for something, when it is time.
func (b *backlog) look(at, inFlight int64) {
	if at < b.next.Load() || !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	b.next.Store(at + lookForOverload)
	dt := float64(max(at-b.looked, 1))
	b.looked = at
	b.learn(dt)
	b.count(dt)
	b.judge(at, inFlight)
	b.over = at < b.until
	if !b.over {
		b.word.Store(noLimit)
		b.restart(math.MaxInt64)
		return
	}
	b.adopt(at, inFlight)
	b.word.Store(b.limit(at, inFlight))
}

// learn takes in what completed since the last look.
func (b *backlog) learn(dt float64) {
	n, sum := b.took.n.Swap(0), b.took.sum.Swap(0)
	if n == 0 {
		return
	}
	mean := float64(sum) / float64(n)
	if b.rt == 0 {
		b.rt = mean
	}
	a := min(1-math.Exp(-dt/backlogSmooth), 1-math.Exp(-float64(n)/backlogBatch))
	b.rt += a * (mean - b.rt)
	if b.over {
		b.samples, b.sum = 0, 0
		return
	}
	b.samples, b.sum = b.samples+n, b.sum+sum
	if b.samples < backlogSamples {
		return
	}
	mean = float64(b.sum) / float64(b.samples)
	b.samples, b.sum = 0, 0
	if b.usual == 0 || mean < b.usual {
		b.usual = mean
	}
	b.usual += (1 - math.Exp(-dt/backlogForgets)) * (b.rt - b.usual)
}

// count keeps the share of the arrivals that get a place.
func (b *backlog) count(dt float64) {
	is := [2]uint64{b.entered.Load(), b.turned.Load()}
	entered, turned := float64(is[0]-b.before[0]), float64(is[1]-b.before[1])
	b.before = is
	if all := entered + turned; all > 0 {
		b.fits += (1 - math.Exp(-dt/backlogSmooth)) * (entered/all - b.fits)
	}
}

// judge prolongs the overload if there is a sign of it.
func (b *backlog) judge(at, inFlight int64) {
	since := max(b.lastEnd.Load(), b.busySince.Load())
	switch {
	case inFlight > 0 && since > 0 && at-since > max(hangsAfter, int64(hangsBaselines*b.usual)):
		b.cause = hung
	case b.over && b.fits < backlogFits:
	case b.usual > 0 && b.rt > backlogEnter*b.usual && !b.excused():
		b.cause = slowAnswers
	default:
		return
	}
	b.until = at + coolDown
}

// adopt takes a new time for the usual one, if what began while no more than the
// limit was in flight still takes long.
func (b *backlog) adopt(at, inFlight int64) {
	within := b.within.Load()
	switch {
	case inFlight > b.word.Load():
		b.restart(math.MaxInt64)
		return
	case within == math.MaxInt64:
		b.restart(at)
		return
	}
	n := b.fresh.n.Load()
	if n < fewestSamples || at-within < backlogPatience {
		return
	}
	if mean := float64(b.fresh.sum.Load()) / float64(n); mean > backlogStays*b.usual {
		b.usual = mean
	}
	b.restart(at)
}

// restart forgets what has been learnt under the limit.
func (b *backlog) restart(within int64) {
	b.within.Store(within)
	b.fresh.n.Store(0)
	b.fresh.sum.Store(0)
}

// limit is what to allow from now on.
func (b *backlog) limit(at, inFlight int64) int64 {
	b.rates.turn(at)
	if rate := b.rates.rate(); rate > 0 {
		b.rate = rate
	}
	limit := int64(max(20, 4*machine.Procs()))
	if b.rate > 0 && b.usual > 0 {
		limit = max(int64(math.Ceil(min(b.rate*b.usual/1e9*backlogHeadroom, noLimit))), backlogLeast)
	}
	if before := b.word.Load(); before != noLimit && inFlight > before {
		return max(limit, before) // let it drain first
	}
	return limit
}

func (b *backlog) state() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Name: "backlog", Limit: b.Limit(), Overloaded: b.over}
	if s.Overloaded {
		s.Cause = b.cause
	}
	return s
}
