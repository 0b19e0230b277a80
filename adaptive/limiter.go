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

// Limiter keeps the units in flight at or below the limit of its [Strategy]. It is an [algo.Limiter]:
// Acquire takes a slot per unit, Release of the lease frees them, and the strategy learns from the time
// in between. For [Default], [RunQueue] and every other [Follower] a request takes one slot at any cost.
//
// Bound: no admission brings the units in flight above the limit in force at that moment, except that a
// request enters while nothing is in flight, at any cost up to the largest limit. When a strategy lowers
// the limit, work in flight runs to its end, and with [WithPriorities] requests of higher classes may
// follow it, one for each two units that end.
//
// Work that waits for its client ([algo.Lease.AwaitClient]; httpmw and grpcmw call it) does not count as
// in flight, unless the strategy is [Fixed] or a [Min] with it. When such work continues, the units in
// flight may exceed the limit.
//
// All keys share the limit; see [PerKey] for a limit per key. A key is the tenant of [WithFairShares] and
// has no other effect.
//
// A denial has the reason Overload, and a Cause: processor, latency, hang, limit, queue, deadline,
// priority or share, see [Denials]. RetryAfter estimates when enough units will have ended. A cost above
// the largest limit that the strategy ever sets is denied with the reason Never.
//
// Acquire and Release allocate nothing, unless the request waits in a queue. The limiter has no
// goroutine.
type Limiter struct {
	machine  machine.Machine
	strategy Strategy
	follower Follower // the strategy; nil: samples suffice
	traits
	sampled bool       // only RetryAfter depends on the duration of work
	plain   bool       // Fixed alone, without a queue and an order
	min     int64      // of the limit; its largest value is max of traits
	queue   *waitQueue // nil: no waiting
	order   *order     // nil: all requests are alike
	closed  atomic.Bool
	_       [64]byte // every request writes the fields below

	occupied
	durations
	_       [8]byte
	denials denialCounts

	connections connections
}

// arrival is a request on its way to slots.
type arrival struct {
	key string
	n   int64 // slots
	at  int64 // instant of the arrival, 0: not known
	claim
}

// found is the result of a search for slots.
type found struct {
	inFlight, limit int64
	cause           algo.Cause // None: slots were found
}

// Acquire admits n units of work if they fit. With a queue it waits for its turn, as long as the
// queue allows, and returns ctx's error if ctx ends first. Without a queue it returns at once.
//
// If ctx has less time left than the wait in the queue and a recent fast request took, the request
// is denied with the RetryAfter algo.Forever. At most one such request a second is admitted,
// because the estimate may be too long. If ctx is canceled the error is ctx's. n = 0 is a peek. A
// negative n is [algo.ErrCost]. After Close the error is [ErrClosed].
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
	a := arrival{key: key, n: n}
	if l.gates != nil || l.order != nil {
		if c := l.arrive(ctx, &a); c != cause.None {
			l.order.denied(&a)
			l.deny(&lease.Decision, n, c, l.limit())
			return lease, nil
		}
	}
	f, err := l.find(ctx, &a)
	switch {
	case err != nil:
		l.order.decided(&a, false)
		return lease, err
	case f.cause != cause.None:
		l.lack(&lease.Decision, &a, f)
		return lease, nil
	}
	if a.at == 0 || l.queue != nil {
		a.at = l.start()
	}
	if l.follower != nil {
		l.follow(a.at, n, f.inFlight)
	}
	lease.Allowed, lease.Limit, lease.Remaining = true, f.limit, max(f.limit-f.inFlight, 0)
	h := algo.FillLease(&lease, l)
	h.N, h.At, *inFlightAt(h), *slotsOf(h) = units, a.at, f.inFlight, n
	if a.known {
		l.order.found(&a)
		l.order.decided(&a, true)
		h.Key, *claimOf(h) = key, a.charge.pack()|math.MinInt64 // never 0
	}
	return lease, nil
}

// arrive asks the gates and, under overload, computes the request's claim.
func (l *Limiter) arrive(ctx context.Context, a *arrival) (c algo.Cause) {
	a.at = l.machine.Now()
	admits := true
	for i := 0; i < len(l.gates) && admits; i++ {
		admits = l.gates[i].Admits(time.Duration(a.at))
	}
	if l.order == nil || admits && !l.order.strained(a.at) {
		if !admits {
			c = cause.Processor
		}
		return c
	}
	if !admits {
		l.order.strain(a.at)
	}
	l.claim(ctx, a)
	if l.gates != nil {
		c = l.pass(&a.claim, admits)
	}
	return c
}

// find takes slots, at once or in turn.
func (l *Limiter) find(ctx context.Context, a *arrival) (f found, err error) {
	if l.queue != nil {
		if l.queue.length.Load() == 0 {
			if f = l.enter(a.n); f.cause == cause.None {
				return f, nil
			}
		}
		if l.order != nil && !a.known {
			l.claim(ctx, a)
		}
		return l.queue.wait(ctx, a)
	}
	if a.known {
		if f = l.keep(a); f.cause != cause.None {
			return f, nil
		}
	}
	f = l.enter(a.n)
	if f.cause == cause.Limit && f.inFlight > f.limit {
		if all, ok := l.inherit(a); ok {
			return found{all, f.limit, cause.None}, nil
		}
	}
	return f, nil
}

// keep denies slots that are free but reserved for others.
func (l *Limiter) keep(a *arrival) (f found) {
	if kept, higher := l.order.keeps(&a.claim, a.at); kept > 0 {
		f.limit, f.inFlight = l.limit(), l.working(l.inFlight.Load())
		if kept = min(kept, mostKept(f.limit)); a.n > f.limit-kept-f.inFlight && a.n <= f.limit-f.inFlight {
			f.cause = forRank(a.rank, higher)
		}
	}
	return f
}

// limit returns the strategy's limit within the bounds.
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
		// With an order, a gate's answer depends on the request's class and tenant.
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

// lack denies a request that found no slot.
func (l *Limiter) lack(d *algo.Decision, a *arrival, f found) {
	c, at := f.cause, a.at
	if c == cause.Limit {
		c = l.blame(f.limit)
	}
	l.order.denied(a)
	if l.queue != nil { // it may have waited since
		at, f.limit = 0, l.limit()
	}
	if a.known {
		l.order.lacked(a, f.limit)
	}
	if l.follower != nil {
		if at == 0 {
			at = l.machine.Now()
		}
		l.follower.Denied(time.Duration(at), a.n, l.working(l.inFlight.Load()), c)
	}
	l.deny(d, a.n, c, f.limit)
}

// blame returns the cause of the current limit.
func (l *Limiter) blame(limit int64) algo.Cause {
	for _, s := range l.blamable {
		if int64(s.Limit()) <= limit {
			return s.Cause()
		}
	}
	return cause.Limit
}

// deny counts a denial and explains it.
func (l *Limiter) deny(d *algo.Decision, n int64, c algo.Cause, limit int64) {
	l.denials.add(c)
	l.explainDenial(d, n, c, limit)
}

// Limit returns the current limit of units in flight.
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

// never marks a cost that can never fit, which has no cause.
const never = cause.None

type denialCounts [cause.Count]atomic.Uint64

func (d *denialCounts) add(c algo.Cause) { d[c].Add(1) }
