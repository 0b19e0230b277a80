package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Default is the strategy for a server about which nothing is known: the lower
// of [NewRunQueue], for the processor, and a limit on what is in flight for
// everything else that work can wait for: a database, another service, a pool,
// a lock.
//
// The second one stays out of the way until successes take four times as long
// as they usually do, with no queue in front of the processor to explain it, or
// until nothing that began completes for 1 s, or five times the usual time if that
// is more. Then
// it allows twice what completes in the usual time (Little's law), beside what
// stays in flight for long, such as streams; and more, as long as successes take
// less than twice the usual time and requests are denied. It ends 1 s after
// the last sign of a queue, and when at least 85 % of what comes finds a place;
// where nothing completes, one request a second is let through to find out. If
// work still takes more than three times the usual time although no more is in
// flight, then it is not a queue that makes it slow, and the new time is the usual
// one.
//
// The usual time takes 100 successes to be known. Where times are compared one
// below 10 ms counts as 10 ms: slow is 30 ms more than usual, or four times as
// long if that is more. One response counts as ten times the usual time at most, so
// what becomes slow is sure to be noticed only if it is more than a third of the
// requests: a queue that only few meet, such as those that miss a cache, is better
// limited where they meet it. Streams that begin while nothing else does look as
// if they hung: give them a limiter of their own.
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

// queues reports whether work waited lately for the processor, which then explains
// why it takes longer.
func (q *runQueue) queues() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.peak > .5
}

const (
	backlogEnter    = 4.0 // times the usual response time
	backlogStays    = 3.0
	backlogEasy     = 2.0 // up to where more may be let in
	backlogHeadroom = 2.0
	backlogLeast    = 4                                         // lowest limit
	backlogFits     = 0.85                                      // share of the arrivals that get a place when the load fits again
	backlogSmooth   = float64(100e6)                            // memory of that share, ns
	backlogSpan     = time.Second                               // over which rates are measured
	backlogGrows    = float64(2 * time.Second)                  // ns in which the headroom grows by a factor of e
	backlogStanding = int64(10 * time.Second)                   // what is in flight for longer stays
	backlogPatience = int64(backlogSpan + 100*time.Millisecond) // no rate from before is left
	slowAnswers     = "responses take four times as long as usual"
)

// backlog limits what is in flight to what completes in the usual time, while
// work takes far longer than that and the processor is not why.
type backlog struct {
	excused func() bool // whether the processor explains long times
	rates   *Window
	times   usually

	word    atomic.Int64  // the limit in force
	next    atomic.Int64  // when to look again
	began   atomic.Int64  // when the first began since the last end, 0: none has
	entered atomic.Uint64 // admissions
	turned  atomic.Uint64 // denials for want of a place

	mu       sync.Mutex // guards what follows, and the learning of times
	looked   int64
	before   [2]uint64  // admissions and denials at the last look
	fits     float64    // smoothed share of the arrivals that get a place
	rate     float64    // last known
	lowest   [2]float64 // in flight beyond what completes in the usual time, in this span and the one before
	span     int64      // when this one began
	headroom float64
	until    int64 // when the overload ends, if nothing renews it
	probed   int64 // when a request was last let through to find out
	over     bool
	cause    string
}

func newBacklog(excused func() bool) *backlog {
	at := now()
	b := &backlog{excused: excused, rates: newWindow(backlogSpan, 20, fewestSamples, at), looked: at, fits: 1}
	b.word.Store(noLimit)
	b.times.restart(math.MaxInt64)
	return b
}

func (b *backlog) Limit() int { return int(b.word.Load()) }

func (b *backlog) admitted(at, _, inFlight int64) {
	b.entered.Add(1)
	if b.began.Load() == 0 {
		b.began.Store(at)
	}
	b.look(at, inFlight)
}

func (b *backlog) finished(at, inFlight int64) {
	if b.began.Load() != 0 {
		b.began.Store(0)
	}
	b.look(at, inFlight)
}

// denied looks too: if all are denied nothing else happens that could end it.
func (b *backlog) denied(by cause, inFlight int64) {
	switch by {
	case byLimit, byFullQueue, byLongWait:
		b.turned.Add(1)
		b.look(now(), inFlight)
	}
}

func (b *backlog) Observe(s Sample) {
	if s.Outcome == algo.Succeeded {
		b.rates.addAt(s.end(), int64(s.RTT))
		b.times.observe(s.end(), int64(s.RTT))
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
	b.rates.turn(at)
	if rate := b.rates.rate(); rate > 0 {
		b.rate = rate
	}
	news := b.times.learn(dt, !b.over)
	denials := b.count(dt)
	b.judge(at, news)
	b.over = at < b.until
	if !b.over {
		if news {
			b.standing(at, float64(inFlight)-b.rate*b.times.whole/1e9)
		}
		b.word.Store(noLimit)
		b.headroom = backlogHeadroom
		b.times.restart(math.MaxInt64)
		return
	}
	b.adopt(at, inFlight)
	if news {
		b.adjust(dt, denials)
	}
	b.word.Store(b.limit(at, inFlight))
}

// standing takes in how much is in flight beyond what completes in the usual
// time. The least of that is what stays; a queue comes and goes.
func (b *backlog) standing(at int64, beyond float64) {
	if at-b.span >= backlogStanding {
		b.lowest[1], b.lowest[0], b.span = b.lowest[0], beyond, at
	}
	b.lowest[0] = min(b.lowest[0], beyond)
}

// count keeps the share of the arrivals that get a place, and reports whether any
// did not since the last look.
func (b *backlog) count(dt float64) (denials bool) {
	is := [2]uint64{b.entered.Load(), b.turned.Load()}
	entered, turned := float64(is[0]-b.before[0]), float64(is[1]-b.before[1])
	b.before = is
	if all := entered + turned; all > 0 {
		b.fits += (1 - math.Exp(-dt/backlogSmooth)) * (entered/all - b.fits)
	}
	return turned > 0
}

// judge prolongs the overload if there is a sign of it.
func (b *backlog) judge(at int64, news bool) {
	began, t := b.began.Load(), &b.times
	longest := max(hangsAfter, int64(hangsBaselines*t.usual))
	switch {
	case t.usual == 0:
		return
	case began > 0 && at-began > longest:
		b.cause = hung
	case b.over && b.fits < backlogFits && b.cause == slowAnswers && int64(t.silent) < longest:
	case news && t.recent > t.times(backlogEnter) && !b.excused():
		b.cause = slowAnswers
	default:
		return
	}
	b.until = at + coolDown
}

// adjust allows more while those who are denied would not have had to wait, and
// less again when they would.
func (b *backlog) adjust(dt float64, denials bool) {
	switch {
	case b.times.recent > b.times.times(backlogEasy):
		b.headroom = max(b.headroom*math.Exp(-dt/backlogGrows), backlogHeadroom)
	case denials:
		b.headroom *= math.Exp(min(dt/backlogGrows, .1))
	}
}

// adopt takes a new time for the usual one, if what began while no more than the
// limit was in flight still takes long. While the limit leaves more room than it
// began with, that is why.
func (b *backlog) adopt(at, inFlight int64) {
	since := b.times.since.Load()
	switch {
	case inFlight > b.word.Load(), b.headroom > backlogHeadroom:
		b.times.restart(math.MaxInt64)
	case since == math.MaxInt64:
		b.times.restart(at)
	case b.times.fresh.n.Load() >= fewestSamples && at-since >= backlogPatience:
		b.times.longer(backlogStays)
		b.times.restart(at)
	}
}

// limit is what to allow from now on.
func (b *backlog) limit(at, inFlight int64) int64 {
	stays := max(min(b.lowest[0], b.lowest[1]), 0)
	little := min(b.rate*b.times.whole/1e9*b.headroom, noLimit)
	limit := max(int64(math.Ceil(min(little+stays, noLimit))), backlogLeast)
	if before := b.word.Load(); before != noLimit && inFlight > before {
		limit = max(limit, min(before, inFlight)) // let it drain first
	}
	if b.cause == hung && at-b.probed >= coolDown {
		b.probed = at
		return max(limit, inFlight+1)
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
