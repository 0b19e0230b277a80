package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/interleave"
)

// occupied counts the taken slots.
type occupied struct {
	inFlight atomic.Int64
	atClient atomic.Int64 // units that wait for their client, as admitted
	lighter  atomic.Int64 // units by which work in flight has been settled below its admission
}

// maxWeight bounds a request's weight, so that sums cannot overflow.
const maxWeight = 1 << 40

// enter takes n slots, at most l.max, if they are free or nothing is in flight: only admitted work
// raises a limit, so one below the cost of a request could never rise otherwise. It returns the units
// then in flight; cause is None on success.
//
// The check and the increment are one swap. Adding first and undoing an excess would keep the bound,
// but would show more in flight than the limit for a moment, could deny a small request because of a
// concurrent large one, and would make a denial write to the word that every admission needs.
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

// acquirePlain completes Acquire if nothing waits and the limit, l.max, counts all units and never
// changes. It calls no strategy.
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

// follow reports an admission to the follower. The caller's signal may panic there.
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

// free returns n unused slots.
func (l *Limiter) free(n int64) {
	l.inFlight.Add(-n)
	if l.queue != nil {
		l.queue.admit()
	}
}

// working returns the units in flight that count: all, which the caller must have read before,
// minus those that wait for their client. The waiting part of work that was settled to less is
// unknown and not subtracted, so the result may be too large, never too small.
func (l *Limiter) working(all int64) int64 {
	if l.countsWaiting {
		return all
	}
	return all - l.waitsForClient(all)
}

// waitsForClient returns a lower bound of the units in all that wait for their client.
func (o *occupied) waitsForClient(all int64) int64 {
	n := o.atClient.Load()
	if n > 0 {
		n = min(max(n-o.lighter.Load(), 0), all)
	}
	return n
}

// The accessors below name what a [Limiter] keeps of an admission in its Handle.

// inFlightAt points to the units in flight at the admission, its own included.
func inFlightAt(h *algo.Handle) *int64 { return &h.State[0] }

// slotsOf points to the number of slots that the admission took, before any Settle.
func slotsOf(h *algo.Handle) *int64 { return &h.State[1] }

// claimOf points to the tenant's packed charge, 0 if its share did not matter.
func claimOf(h *algo.Handle) *int64 { return &h.State[2] }

// AwaitClient excludes work that waits for its client from the work in flight. It implements
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

// Settle corrects the weight of an admission, upwards even above the limit. Units by which it is
// now lower than at the admission do not count as waiting for a client, because it is unknown which
// work waits. It implements [algo.Releaser]; callers use the lease's Settle.
func (l *Limiter) Settle(h algo.Handle, actual int64) {
	less := l.lighterBy(&h, actual) - l.lighterBy(&h, h.N)
	if less > 0 { // before the slots are free: otherwise others could be admitted twice
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

// lighterBy returns how much less work weighs, settled to n, than at its admission.
func (l *Limiter) lighterBy(h *algo.Handle, n int64) int64 { return max(*slotsOf(h)-l.slots(n), 0) }

// slots returns the number of slots for n units.
func (l *Limiter) slots(n int64) int64 {
	if l.perRequest {
		return min(n, 1)
	}
	return weight(n)
}

func weight(n int64) int64 { return min(n, maxWeight) }

// InFlight returns the current number of units in flight.
func (l *Limiter) InFlight() int { return int(min(l.inFlight.Load(), math.MaxInt)) }
