package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/interleave"
)

// occupied is what takes the slots.
type occupied struct {
	inFlight atomic.Int64
	atClient atomic.Int64 // units that wait for their client, as admitted
	lighter  atomic.Int64 // units by which work in flight has been settled below its admission
}

// maxWeight is the largest weight of a request; it keeps sums far from overflow.
const maxWeight = 1 << 40

// enter takes n slots, at most l.max, if they are free or nothing is in flight: a limit that is below
// the cost of a request could not rise otherwise, because only work that is admitted raises it. It
// returns the units then in flight. The cause is None if it got them.
//
// The check and the increment are one swap. Adding first and undoing an excess
// would keep the bound, but would show more in flight than the limit for a moment,
// could deny a small request because of a concurrent large one, and would make a
// denial write to the word that every admission needs.
func (l *Limiter) enter(n int64) found {
	for {
		limit := l.limit()
		all := l.inFlight.Load()
		inFlight := l.working(all)
		if n > limit-inFlight && inFlight > 0 {
			return found{inFlight, limit, cause.Limit}
		}
		interleave.Point()
		if l.inFlight.CompareAndSwap(all, all+n) {
			return found{inFlight + n, limit, cause.None}
		}
	}
}

// acquirePlain is the rest of Acquire where nothing waits and all units count up to a limit that
// never changes: l.max. It calls no strategy.
func (l *Limiter) acquirePlain(lease *algo.Lease, n int64) {
	for {
		inFlight := l.inFlight.Load() + n
		if inFlight > l.max {
			l.deny(&lease.Decision, n, cause.Limit, l.max)
			return
		}
		interleave.Point()
		if l.inFlight.CompareAndSwap(inFlight-n, inFlight) {
			lease.Allowed, lease.Limit, lease.Remaining = true, l.max, l.max-inFlight
			h := algo.FillLease(lease, l)
			h.N, h.At, *inFlightAt(h), *slotsOf(h) = n, l.start(), inFlight, n
			return
		}
	}
}

// follow passes an admission on. A signal of the caller may panic there.
func (l *Limiter) follow(at, n, inFlight int64) {
	returned := false
	defer func() {
		if !returned {
			l.free(n)
		}
	}()
	l.follower.Admitted(time.Duration(at), n, inFlight)
	returned = true
}

// free gives back n slots that were not used.
func (l *Limiter) free(n int64) {
	l.inFlight.Add(-n)
	if l.queue != nil {
		l.queue.admit()
	}
}

// working returns the number of units in flight that count: all, minus the units
// that wait for their client. If work was settled to less, its waiting part is
// unknown, so none of it is subtracted: the result may be too large, never too
// small. all must have been read before.
func (l *Limiter) working(all int64) int64 {
	if l.countsWaiting {
		return all
	}
	return all - l.waitsForClient(all)
}

// waitsForClient is at most the part of all that waits for its client.
func (o *occupied) waitsForClient(all int64) int64 {
	n := o.atClient.Load()
	if n > 0 {
		n = min(max(n-o.lighter.Load(), 0), all)
	}
	return n
}

// What a [Limiter] keeps of an admission in its Handle.

// inFlightAt is the work in flight at the admission, with it.
func inFlightAt(h *algo.Handle) *int64 { return &h.State[0] }

// slotsOf is the slots that the admission took, whatever it was settled to.
func slotsOf(h *algo.Handle) *int64 { return &h.State[1] }

// claimOf is what the tenant was charged, packed; 0 if its share was not in question.
func claimOf(h *algo.Handle) *int64 { return &h.State[2] }

// AwaitClient follows work that waits for its client. It implements
// [algo.ClientWaiter]; callers use the lease's AwaitClient.
func (l *Limiter) AwaitClient(h *algo.Handle, waits bool) {
	n := *slotsOf(h)
	if !waits {
		n = -n
	}
	l.atClient.Add(n)
	if waits && l.queue != nil {
		l.queue.admit()
	}
}

// Settle corrects the weight of an admission, upwards even above the limit. While it is
// lower than at the admission, the difference is not subtracted from the work in flight
// as work that waits for its client, because it is unknown which work waits. It
// implements [algo.Releaser]; callers use the lease's Settle.
func (l *Limiter) Settle(h algo.Handle, actual int64) {
	less := l.lighterBy(&h, actual) - l.lighterBy(&h, h.N)
	if less > 0 { // before the slots are free, or others could be admitted twice
		l.lighter.Add(less)
	}
	l.inFlight.Add(l.slots(actual) - l.slots(h.N))
	if less < 0 {
		l.lighter.Add(less)
	}
	if l.queue != nil {
		l.queue.admit()
	}
}

// lighterBy is by how much work that was settled to n weighs less than at its admission.
func (l *Limiter) lighterBy(h *algo.Handle, n int64) int64 { return max(*slotsOf(h)-l.slots(n), 0) }

// slots is the number of slots that n units take.
func (l *Limiter) slots(n int64) int64 {
	if l.perRequest {
		return min(n, 1)
	}
	return weight(n)
}

// weight is n, bounded.
func weight(n int64) int64 { return min(n, maxWeight) }

// InFlight is the current number of units in flight.
func (l *Limiter) InFlight() int { return int(min(l.inFlight.Load(), math.MaxInt)) }
