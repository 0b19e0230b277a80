package adaptive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/interleave"
)

// ErrClosed is what Acquire returns after Close.
var ErrClosed = errors.New("adaptive: the limiter is closed")

// Limiter keeps the number of units in flight at or below what its [Strategy]
// allows. It is an [algo.Limiter]: Acquire takes a place, Release of the lease
// frees it and lets the strategy learn from the time in between.
//
// Bound: no request is ever admitted that would bring the units in flight
// above the limit in force at that moment, however many goroutines ask. When a
// strategy lowers the limit, what is in flight already runs to its end, and
// nothing more is admitted until the count has fallen below the new one.
//
// The key does not distinguish anybody here; see [PerKey] for that. It only
// places a request within its class ([WithPriorities]).
//
// A denial has the reason Overload, and RetryAfter is an estimate: the time in
// which as many units are expected to end as the request lacks. [Limiter.Explain]
// says more. A cost above anything that the strategy would ever allow is denied
// with the reason Never.
//
// Acquire and Release allocate nothing, unless the request waits in a queue.
// The limiter has no goroutine.
type Limiter struct {
	strategy Strategy
	follows  follower // nil: the strategy only wants samples
	gate     gate     // nil: nothing but the limit stands before a request
	seldom   bool     // nothing but RetryAfter depends on how long work takes
	min, max int64    // what the strategy's limit is moved into
	line     *line    // nil: nobody waits
	ranks    *ranks   // nil: no priorities
	_        [64]byte // what follows is written by every request

	inFlight atomic.Int64
	mean     atomic.Int64  // smoothed RTT of successes, nanoseconds
	turns    atomic.Uint32 // counts admissions where they are timed seldom
	closed   atomic.Bool
	_        [40]byte
	tally    tally
}

// mostUnits is the largest cost that is counted. It keeps the sum of all that
// is in flight far from wrapping.
const mostUnits = 1 << 40

// New makes a limiter. It takes the options [WithLimits] (default: whatever the
// strategy says, at least 1), [WithQueue] (default: nobody waits) and
// [WithPriorities]. The error names the field and the value that is out of
// range, in the strategy too. A nil strategy panics.
func New(s Strategy, opts ...Option) (*Limiter, error) {
	if s == nil {
		panic("adaptive: New needs a strategy")
	}
	set := settings{min: 1, max: noLimit}
	if err := configure("New", &set, opts, "WithLimits", "WithQueue", "WithPriorities"); err != nil {
		return nil, err
	}
	if err := errors.Join(check(s), set.queue.check()); err != nil {
		return nil, fmt.Errorf("adaptive: New: %w", err)
	}
	l := &Limiter{strategy: s, min: int64(set.min)}
	l.max = max(int64(min(set.max, ceiling(s))), l.min)
	l.follows, _ = s.(follower)
	l.gate = gateOf(s)
	_, l.seldom = s.(fixed)
	l.seldom = l.seldom && !set.priorities
	if set.queue.kind != unqueued {
		l.line = newLine(l, set.queue)
	}
	if set.priorities {
		l.ranks = newRanks()
	}
	return l, nil
}

// Acquire admits n units of work if they fit. With a queue it waits for its
// turn, at most as long as the queue says and until ctx ends, whose error it
// then returns; without one it returns at once. n = 0 asks without taking a
// place. A negative n is [algo.ErrCost]; after Close the error is [ErrClosed].
func (l *Limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 1 || n > l.max || l.closed.Load() {
		return l.unusual(n)
	}
	if l.ranks != nil && l.ranks.sheds(ctx, key, l) {
		l.deny(&lease.Decision, n, byPriority)
		return lease, nil
	}
	at := int64(0)
	if l.gate != nil {
		if at = now(); !l.gate.admits(at) {
			l.deny(&lease.Decision, n, byRunQueue)
			return lease, nil
		}
	}
	inFlight, limit, ok := int64(0), int64(0), false
	if l.line == nil || l.line.length.Load() == 0 {
		inFlight, limit, ok = l.enter(n)
	}
	if !ok && l.line != nil {
		var cause cause
		if inFlight, limit, cause, err = l.line.wait(ctx, n); err != nil {
			return lease, err
		}
		if ok = cause == none; !ok {
			l.deny(&lease.Decision, n, cause)
			return lease, nil
		}
	}
	if !ok {
		l.deny(&lease.Decision, n, byLimit)
		return lease, nil
	}
	if at == 0 || l.line != nil {
		at = l.start()
	}
	if l.follows != nil {
		l.follows.admitted(at, n, inFlight)
	}
	if l.ranks != nil {
		l.ranks.admitted(at, l)
	}
	lease.Allowed, lease.Limit, lease.Remaining = true, limit, max(limit-inFlight, 0)
	h := algo.FillLease(&lease, l)
	h.N, h.At, h.State[0] = n, at, inFlight
	return lease, nil
}

// start is the instant of an admission, or 0 if it is not to be timed: the clock
// is most of what an admission costs, and a fixed limit learns nothing from it.
func (l *Limiter) start() int64 {
	if l.seldom && l.turns.Add(1)%timedEvery != 1 {
		return 0
	}
	return now()
}

// limit is what the strategy says, within the limits.
func (l *Limiter) limit() int64 {
	return min(max(int64(l.strategy.Limit()), l.min), l.max)
}

// enter takes n places if they are free, and returns how many are then taken.
// The check and the increment are one swap. Adding first and taking back what
// does not fit would admit no more, but would for a moment show more in flight
// than the limit, deny a small request because a large one was just refused,
// and make a denial write to the word that every admission needs.
func (l *Limiter) enter(n int64) (inFlight, limit int64, ok bool) {
	for {
		limit = l.limit()
		was := l.inFlight.Load()
		if n > limit-was {
			return was, limit, false
		}
		interleave.Point()
		if l.inFlight.CompareAndSwap(was, was+n) {
			return was + n, limit, true
		}
	}
}

// busy reports whether more than three quarters of what is allowed is taken.
func (l *Limiter) busy() bool {
	return l.inFlight.Load()*busyParts > l.limit()*(busyParts-1) || l.gate != nil && l.gate.busy()
}

// unusual answers what is not an ordinary request.
func (l *Limiter) unusual(n int64) (lease algo.Lease, err error) {
	limit := l.limit()
	switch {
	case n < 0:
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	case l.closed.Load():
		return lease, ErrClosed
	case n == 0:
		lease.Allowed = true
		lease.Limit, lease.Remaining = limit, max(limit-l.inFlight.Load(), 0)
		if l.gate != nil && l.gate.peek() {
			lease.Remaining = 0
		}
	default:
		lease.Reason, lease.RetryAfter = algo.Never, algo.Forever
		lease.Limit, lease.Remaining = limit, max(limit-l.inFlight.Load(), 0)
		l.tally.add(never)
	}
	return lease, nil
}

// deny writes the denial of n units.
func (l *Limiter) deny(d *algo.Decision, n int64, c cause) {
	l.tally.add(c)
	inFlight := l.inFlight.Load()
	if l.follows != nil {
		l.follows.denied(c, inFlight)
	}
	limit := l.limit()
	ahead := int64(0)
	if l.line != nil {
		ahead = l.line.length.Load()
	}
	d.Reason, d.Limit, d.Remaining = algo.Overload, limit, max(limit-inFlight, 0)
	d.RetryAfter = drain(l.mean.Load(), inFlight, inFlight+n+ahead-limit)
	d.NextAfter, d.ResetAfter = d.RetryAfter, max(d.RetryAfter, drain(l.mean.Load(), inFlight, inFlight))
}

// Release frees the places of an admission and, if it may teach, passes its
// duration to the strategy. It implements [algo.Releaser]; callers use the
// lease's Release.
func (l *Limiter) Release(h algo.Handle, o algo.Outcome) {
	// First of all: whatever a strategy does, the place is free.
	left := l.inFlight.Add(-weight(h.N))
	if l.line != nil {
		defer l.line.admit()
	}
	if h.At == 0 {
		return
	}
	at := now()
	if l.follows != nil {
		l.follows.finished(at, left)
	}
	if o > algo.Failed {
		return
	}
	rtt := max(at-h.At, 1)
	if !l.teaches(rtt, o) {
		return
	}
	l.strategy.Observe(Sample{
		RTT: time.Duration(rtt), End: time.Duration(at), InFlight: int(h.State[0]), Outcome: o,
	})
}

// teaches reports whether work that took rtt may teach, and keeps the smoothed
// RTT. Concurrent updates may lose one another; the mean does not mind.
func (l *Limiter) teaches(rtt int64, o algo.Outcome) bool {
	mean := l.mean.Load()
	switch {
	case o == algo.Failed:
		return mean > 0 && rtt >= mean
	case mean == 0:
		l.mean.Store(rtt)
	default:
		l.mean.Store(max(mean+(rtt-mean)/16, 1))
	}
	return true
}

// Settle corrects the weight of an admission, upwards even above the limit. It
// implements [algo.Releaser]; callers use the lease's Settle.
func (l *Limiter) Settle(h algo.Handle, actual int64) {
	l.inFlight.Add(weight(actual) - weight(h.N))
	if l.line != nil {
		l.line.admit()
	}
}

// weight is how many places n units take.
func weight(n int64) int64 { return min(n, mostUnits) }

// Limit is the most units in flight at the moment.
func (l *Limiter) Limit() int { return int(l.limit()) }

// InFlight is how many units are in flight at the moment.
func (l *Limiter) InFlight() int { return int(min(l.inFlight.Load(), math.MaxInt)) }

// Describe says what callers are promised: the limit in force, in concurrent
// requests.
func (l *Limiter) Describe() (algo.Description, bool) {
	return algo.Description{Quota: l.limit(), Unit: algo.ConcurrentRequests}, true
}

// Close ends the limiter: who waits in its queue, and who asks afterwards, gets
// [ErrClosed]. Leases that are out can still be released. It never fails.
func (l *Limiter) Close() error {
	if !l.closed.Swap(true) && l.line != nil {
		l.line.close()
	}
	return nil
}
