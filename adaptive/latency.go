package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

const (
	latencyEnter    = 4.0 // baselines
	latencyStays    = 3.0 // baselines
	latencyEasy     = 2.0 // baselines, below which more may be admitted
	latencyHeadroom = 2.0 // initial and least
	latencyMinLimit = 4
	latencyFits     = 0.85                                      // share of the arrivals with a slot at which the load fits
	latencySmooth   = float64(100e6)                            // memory of that share, ns
	latencySpan     = time.Second                               // over which rates are measured
	latencyGrows    = float64(2 * time.Second)                  // in which the headroom grows by a factor of e, ns
	latencyPatience = int64(latencySpan + 100*time.Millisecond) // after which no rate from before is left
	causeSlow       = "responses take at least four times their baseline"
)

// latency limits the work in flight to the amount that completes in one baseline,
// while work takes far longer than that and the processor is not the cause.
type latency struct {
	owned
	machine machine.Machine
	excused func() bool // the processor explains long response times
	rates   *Window
	times   baseline

	limit  atomic.Int64
	next   atomic.Int64 // instant of the next update
	_      [64]byte     // every request writes the fields below
	stall  stall
	turned atomic.Int64 // denials for want of a slot
	_      [64]byte

	mu       sync.Mutex // guards the fields below, and updates of times
	updated  int64
	before   [2]int64 // admissions and denials at the last update
	fits     float64  // smoothed share of the arrivals with a slot
	rate     float64  // last known
	standing lowest   // excess in flight over the amount that completes in one baseline
	headroom float64
	until    int64 // end of the overload, without further signs
	over     bool
	cause    string
}

func newLatency(m machine.Machine, excused func() bool) *latency {
	at := m.Now()
	l := &latency{
		machine: m, excused: excused, rates: newWindow(latencySpan, 20, minSamples, at), updated: at, fits: 1,
	}
	l.limit.Store(noLimit)
	l.times.restart(math.MaxInt64)
	return l
}

func (l *latency) Limit() int { return int(l.limit.Load()) }

func (l *latency) admitted(at, _, inFlight int64) {
	l.stall.began.Add(1)
	l.update(at, inFlight)
}

func (l *latency) finished(at, rtt, inFlight int64, o algo.Outcome) {
	l.stall.finish(rtt, inFlight, o)
	l.update(at, inFlight)
}

// denied updates too: while every request is denied nothing else happens that
// could end the overload.
func (l *latency) denied(by cause, at, n, inFlight int64) {
	if by.wantsSlot() {
		l.stall.wants(n)
		l.turned.Add(1)
		if at == 0 {
			at = l.machine.Now()
		}
		l.update(at, inFlight)
	}
}

func (l *latency) Observe(s Sample) {
	if s.Outcome == algo.Succeeded {
		l.rates.addAt(s.end(l.machine), int64(s.RTT))
		l.times.observe(s.end(l.machine), int64(s.RTT))
	}
}

// update checks whether work has to wait, when it is time.
func (l *latency) update(at, inFlight int64) {
	if at < l.next.Load() || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	l.next.Store(at + updateEvery)
	dt := float64(max(at-l.updated, 1))
	l.updated = at
	l.rates.turn(at)
	if rate := l.rates.rate(); rate > 0 {
		l.rate = rate
	}
	completions := l.times.update(dt, !l.over)
	denials := l.count(dt)
	l.overload(at, inFlight, completions)
	l.over = at < l.until
	if !l.over {
		if completions {
			// Its minimum is the long-lived work, because a queue comes and goes.
			l.standing.add(at, float64(inFlight)-l.rate*l.times.mean/1e9)
		}
		l.limit.Store(noLimit)
		l.headroom = latencyHeadroom
		l.times.restart(math.MaxInt64)
		return
	}
	l.adopt(at, inFlight)
	if completions {
		l.adjust(dt, denials)
	}
	l.limit.Store(l.nextLimit(at, inFlight))
}

// count smooths the share of the arrivals with a slot, and reports denials since
// the last update.
func (l *latency) count(dt float64) (denials bool) {
	now := [2]int64{l.stall.began.Load(), l.turned.Load()}
	entered, turned := float64(now[0]-l.before[0]), float64(now[1]-l.before[1])
	l.before = now
	if all := entered + turned; all > 0 {
		l.fits += (1 - math.Exp(-dt/latencySmooth)) * (entered/all - l.fits)
	}
	return turned > 0
}

// overload prolongs the overload if there is a sign of it.
func (l *latency) overload(at, inFlight int64, completions bool) {
	t := &l.times
	hangs := l.stall.hangs(at, inFlight, int64(t.normal))
	switch {
	case t.normal == 0:
		return
	case hangs:
		l.cause = causeHang
	case l.over && l.fits < latencyFits && l.cause == causeSlow && int64(t.silent) < l.stall.longest.Load():
	case completions && inFlight >= learningFloor && t.recent > t.times(latencyEnter) && !l.excused():
		l.cause = causeSlow
	default:
		return
	}
	l.until = at + coolDown
}

// adjust raises the headroom while denied requests would not have had to wait, and
// lowers it again when they would.
func (l *latency) adjust(dt float64, denials bool) {
	switch {
	case l.times.recent > l.times.times(latencyEasy):
		l.headroom = max(l.headroom*math.Exp(-dt/latencyGrows), latencyHeadroom)
	case denials:
		l.headroom *= math.Exp(min(dt/latencyGrows, .1))
	}
}

// adopt makes a new time the baseline, if work that began within the limit still
// takes long. A raised headroom would explain that, so it prevents the adoption.
func (l *latency) adopt(at, inFlight int64) {
	since := l.times.since.Load()
	switch {
	case inFlight > l.limit.Load(), l.headroom > latencyHeadroom:
		l.times.restart(math.MaxInt64)
	case since == math.MaxInt64:
		l.times.restart(at)
	case l.times.fresh.n.Load() >= minSamples && at-since >= latencyPatience:
		l.times.raise(latencyStays)
		l.times.restart(at)
	}
}

// nextLimit is the limit from now on.
func (l *latency) nextLimit(at, inFlight int64) int64 {
	little := min(l.rate*l.times.mean/1e9*l.headroom, noLimit)
	limit := max(int64(math.Ceil(min(little+l.standing.value(), noLimit))), latencyMinLimit)
	if current := l.limit.Load(); current != noLimit && inFlight > current {
		limit = max(limit, min(current, inFlight)) // let the excess drain first
	}
	if l.cause == causeHang && l.stall.probe(at) {
		return max(limit, inFlight+max(l.stall.wanted.Load(), 1))
	}
	return limit
}

func (l *latency) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{Name: "latency", Limit: l.Limit(), Overloaded: l.over}
	if s.Overloaded {
		s.Cause = l.cause
	}
	return s
}
