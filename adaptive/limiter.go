package adaptive

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/machine"
)

// ErrClosed is the error of Acquire after Close.
var ErrClosed = errors.New("adaptive: limiter is closed")

// Limiter keeps the number of units in flight at or below the limit of its [Strategy]. It is an
// [algo.Limiter]: Acquire takes a slot per unit, Release of the lease frees them, and the strategy learns
// from the time in between. For [Default], [RunQueue] and every other [Follower] a request takes one
// slot, whatever it costs.
//
// Bound: no admission brings the units in flight above the limit in force at that moment, except that a
// request enters while nothing is in flight, whatever its cost up to the largest limit. When a strategy
// lowers the limit, the work in flight runs to its end, and with [WithPriorities] requests of higher
// classes may follow it, one for each two units that end.
//
// Work that waits for its client ([algo.Lease.AwaitClient]; httpmw and grpcmw call it) does not count as
// in flight meanwhile, unless the strategy is [Fixed] or a [Min] with it. When such work goes on it may
// bring the units in flight above the limit.
//
// All keys share the limit; see [PerKey] for a limit per key. A key is the tenant of [WithFairShares] and
// has no other effect.
//
// A denial has the reason Overload, and a Cause: processor, latency, hang, limit, queue, deadline,
// priority or share, see [Denials]. RetryAfter is an estimate: the time in which as many units are
// expected to end as the request lacks. A cost above the largest limit that the strategy ever sets is
// denied with the reason Never.
//
// Acquire and Release allocate nothing, unless the request waits in a queue. The limiter has no
// goroutine.
type Limiter struct {
	machine       machine.Machine
	strategy      Strategy
	follower      Follower // nil: the strategy needs samples only
	gates         []Gate   // none: only the limit decides
	blamable      []blamable
	failing       []failing
	sampled       bool        // only RetryAfter depends on the duration of work
	plain         bool        // Fixed alone, without a queue and an order
	countsWaiting bool        // work that waits for its client counts as in flight
	perRequest    bool        // a cost above 1 counts as 1
	tooLate       func() bool // new work would be; nil: classes inherit no slots
	min, max      int64       // bounds of the strategy's limit
	queue         *waitQueue  // nil: no waiting
	order         *order      // nil: all requests are alike
	_             [64]byte    // every request writes the fields below

	inFlight   atomic.Int64
	atClient   atomic.Int64  // units that wait for their client, as admitted
	lighter    atomic.Int64  // units by which work in flight has been settled below its admission
	mean       atomic.Int64  // smoothed RTT of successes, nanoseconds
	fastest    atomic.Int64  // a recent short RTT, nanoseconds
	lateSince  atomic.Int64  // first denial for a deadline since the last trial; 0: none
	admissions atomic.Uint32 // counted only if sampled
	closed     atomic.Bool
	_          [8]byte
	denials    denialCounts

	connections connections
}

// Acquire admits n units of work if they fit. With a queue it waits for its turn,
// at most the time that the queue allows and until ctx ends; it then returns the
// error of ctx. Without a queue it returns at once.
//
// Work that is expected to end too late is not begun: if ctx has less time left than the wait in
// the queue and a recent fast request took, the request is denied with the RetryAfter
// algo.Forever. At most once a second such a request is begun: the others may have been slower.
// If ctx is canceled the error is ctx's. n = 0 is a peek. A negative n is [algo.ErrCost].
// After Close the error is [ErrClosed].
func (l *Limiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	units := n
	if n = l.slots(n); n < 1 || n > l.max || l.closed.Load() {
		return l.exceptional(n)
	}
	if late, err := l.late(ctx, n); late || err != nil {
		if late {
			l.deny(&lease.Decision, n, cause.Deadline, l.limit())
			lease.RetryAfter = algo.Forever
		}
		return lease, err
	}
	if l.plain {
		l.acquirePlain(&lease, n)
		return lease, nil
	}
	var at int64
	var who claim
	if l.gates != nil || l.order != nil {
		var c algo.Cause
		if at, c = l.arrive(ctx, key, n, &who); c != cause.None {
			l.order.denied(&who, key, at)
			l.deny(&lease.Decision, n, c, l.limit())
			return lease, nil
		}
	}
	inFlight, limit, c, err := l.find(ctx, key, n, &who, at)
	switch {
	case err != nil:
		l.order.decided(&who, key, at, false)
		return lease, err
	case c != cause.None:
		if c == cause.Limit {
			c = l.blame(limit)
		}
		l.lack(&lease.Decision, n, c, limit, &who, key, at)
		return lease, nil
	}
	if at == 0 || l.queue != nil {
		at = l.start()
	}
	if l.follower != nil {
		l.follow(at, n, inFlight)
	}
	lease.Allowed, lease.Limit, lease.Remaining = true, limit, max(limit-inFlight, 0)
	h := algo.FillLease(&lease, l)
	h.N, h.At, h.State[0], h.State[1] = units, at, inFlight, n
	if who.known {
		l.order.found(&who, at)
		l.order.decided(&who, key, at, true)
		h.Key, h.State[2] = key, who.charge.pack()|math.MinInt64 // never 0
	}
	return lease, nil
}

// arrive asks the gates, and computes the claim of the request if there is overload.
func (l *Limiter) arrive(ctx context.Context, key string, n int64, who *claim) (at int64, c algo.Cause) {
	at = l.machine.Now()
	admits := true
	for i := 0; i < len(l.gates) && admits; i++ {
		admits = l.gates[i].Admits(time.Duration(at))
	}
	if l.order == nil || admits && !l.order.strained(at) {
		if !admits {
			c = cause.Processor
		}
		return at, c
	}
	if !admits {
		l.order.strain(at)
	}
	*who = l.order.claim(ctx, key, n, at, l)
	if l.gates != nil {
		c = l.pass(who, admits)
	}
	return at, c
}

// find takes n slots, at once or in turn. The cause is None if it got them.
func (l *Limiter) find(ctx context.Context, key string, n int64, who *claim, at int64) (inFlight, limit int64, c algo.Cause, err error) {
	if l.queue != nil {
		if l.queue.length.Load() == 0 {
			if inFlight, limit, c = l.enter(n); c == cause.None {
				return inFlight, limit, cause.None, nil
			}
		}
		if l.order != nil && !who.known {
			*who = l.order.claim(ctx, key, n, at, l)
		}
		return l.queue.wait(ctx, n, who)
	}
	if who.known {
		if inFlight, limit, c = l.keep(who, n, at); c != cause.None {
			return inFlight, limit, c, nil
		}
	}
	inFlight, limit, c = l.enter(n)
	if c == cause.Limit && inFlight > limit {
		if all, ok := l.inherit(who, at); ok {
			return all, limit, cause.None, nil
		}
	}
	return inFlight, limit, c, nil
}

// keep denies n slots that are free but kept for others.
func (l *Limiter) keep(who *claim, n, at int64) (inFlight, limit int64, c algo.Cause) {
	if kept, higher := l.order.keeps(who, at); kept > 0 {
		limit, inFlight = l.limit(), l.working(l.inFlight.Load())
		if kept = min(kept, mostKept(limit)); n > limit-kept-inFlight && n <= limit-inFlight {
			return inFlight, limit, forRank(who.rank, higher)
		}
	}
	return 0, 0, cause.None
}

// limit is the limit of the strategy, within the bounds.
func (l *Limiter) limit() int64 {
	return min(max(int64(l.strategy.Limit()), l.min), l.max)
}

// exceptional answers a peek, an invalid or impossible cost, and a closed limiter.
func (l *Limiter) exceptional(n int64) (lease algo.Lease, err error) {
	limit := l.limit()
	inFlight := l.working(l.inFlight.Load())
	switch {
	case n < 0:
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	case l.closed.Load():
		return lease, ErrClosed
	case n == 0:
		lease.Allowed = true
		lease.Limit, lease.Remaining = limit, max(limit-inFlight, 0)
		// The answer of a gate concerns a request of some class and tenant.
		if l.order == nil && slices.ContainsFunc(l.gates, Gate.Full) {
			lease.Remaining = 0
		} else if lease.Remaining == 0 && l.follower != nil {
			l.follower.Denied(time.Duration(l.machine.Now()), 0, inFlight, cause.Limit)
		}
		lease = algo.NewLease(lease.Decision, l, algo.Handle{}) // Settle may take slots
	default:
		lease.Reason, lease.RetryAfter = algo.Never, algo.Forever
		lease.Limit, lease.Remaining = limit, max(limit-inFlight, 0)
		l.denials.add(never)
	}
	return lease, nil
}

// lack denies n units that found no slot. They arrived at an instant, 0 if that is not known.
func (l *Limiter) lack(d *algo.Decision, n int64, c algo.Cause, limit int64, who *claim, key string, at int64) {
	l.order.denied(who, key, at)
	if l.queue != nil { // it may have waited since
		at, limit = 0, l.limit()
	}
	if who.known {
		l.order.lacked(who, limit)
	}
	if l.follower != nil {
		if at == 0 {
			at = l.machine.Now()
		}
		l.follower.Denied(time.Duration(at), n, l.working(l.inFlight.Load()), c)
	}
	l.deny(d, n, c, limit)
}

// blame is why the limit is as low as it is.
func (l *Limiter) blame(limit int64) algo.Cause {
	for _, s := range l.blamable {
		if int64(s.Limit()) <= limit {
			return s.Cause()
		}
	}
	return cause.Limit
}

// deny writes the denial of n units under a limit.
func (l *Limiter) deny(d *algo.Decision, n int64, c algo.Cause, limit int64) {
	l.denials.add(c)
	inFlight, mean, ahead := l.working(l.inFlight.Load()), l.mean.Load(), int64(0)
	if l.queue != nil {
		ahead = l.queue.length.Load()
	}
	d.Reason, d.Cause, d.Limit, d.Remaining = algo.Overload, c, limit, max(limit-inFlight, 0)
	d.RetryAfter = retryEstimate(mean, inFlight, inFlight+n+ahead-limit)
	d.NextAfter, d.ResetAfter = d.RetryAfter, max(d.RetryAfter, retryEstimate(mean, inFlight, inFlight))
}

// Limit is the current limit of units in flight.
func (l *Limiter) Limit() int { return int(l.limit()) }

// About returns the limit in force, in concurrent requests.
func (l *Limiter) About() algo.Description {
	return algo.Description{Quota: l.limit(), Unit: algo.ConcurrentRequests, Shared: true, NeedsRelease: true}
}

// Close shuts the limiter down; queued and later calls of Acquire return
// [ErrClosed]. Leases can still be released. It never fails.
func (l *Limiter) Close() error {
	if !l.closed.Swap(true) && l.queue != nil {
		l.queue.close()
	}
	return nil
}

// never stands for a cost that can never fit, which has no cause.
const never = cause.None

// denialCounts counts denials by cause.
type denialCounts [cause.Count]atomic.Uint64

func (d *denialCounts) add(c algo.Cause) { d[c].Add(1) }
