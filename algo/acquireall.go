package algo

import "context"

// AcquireAll charges all of reqs or none: several limits, of different kinds
// and under different keys, in one decision. A service bucket and the bucket of
// one of its calls, or a limit per user, per route and in total.
//
// The limits are charged in order. When one denies, the earlier charges are
// given back and the others are asked, not charged, what they would say, so
// that the answer's RetryAfter is one that suffices for all of them. The limits
// are never locked: two calls that name them in opposite orders cannot block
// each other. A call may be denied because of another one's charge that is
// about to be given back; none is ever admitted beyond a limit.
//
// The answer is one Decision: the longest Delay, RetryAfter and ResetAfter; the
// gravest Reason (Never, Overload, Quota); Limit, Remaining and NextAfter of
// the limit with the least left, among those that denied if one did. Limits
// that are switched off or shadowed are left out of the latter.
// [Lease.Parts] has every limit's own decision. The lease releases the limits
// in reverse order; Settle and Release go to all of them.
//
// Requests for the same limiter and key add up, and a denial answers them as one
// request for the sum. (Where a cost is not a sum, as with [SmoothBursty],
// [SmoothWarmingUp] and markers, RetryAfter is then an estimate.) Requests of
// one backend that stand next to each other are decided by it in one atomic
// step, see [Batcher]. A single request is simply acquired.
//
// Put the limit that denies most often first, and one that may wait, such as an
// in-flight limit with a queue, last: what is charged before it is held
// meanwhile.
//
// A negative N is [ErrCost], an empty list or a nil Limiter [ErrRequest];
// nothing is charged then. The error of a limiter is returned with the number
// of its request once the earlier charges are given back. Up to four limits
// take one allocation.
func AcquireAll(ctx context.Context, reqs ...Request) (lease Lease, err error) {
	if err := validate(reqs); err != nil {
		return lease, err
	}
	if len(reqs) == 1 {
		return reqs[0].Limiter.Acquire(ctx, reqs[0].Key, reqs[0].N)
	}
	var room [usualLeaves]leaf
	leaves, err := flatten(ctx, room[:0], reqs)
	if err != nil {
		return lease, err
	}
	g := newGroup(ctx, leaves, len(reqs))
	err = g.acquire(&lease, leaves)
	return lease, err
}

// acquire decides leaves and writes the answer to lease. If it does not end
// with an admission, by denial, error or panic, nothing stays charged.
func (g *group) acquire(lease *Lease, leaves []leaf) error {
	held := 0
	defer func() { releaseAll(g.leases[:held], Canceled) }()
	for held < len(leaves) {
		end := batchEnd(leaves, held)
		if err := g.pass.charge(leaves[held:end], g.leases[held:end]); err != nil {
			return partError(g.reqs, &leaves[held], err)
		}
		from := held
		held = end
		if !allAllowed(g.leases[from:end]) {
			releaseAll(g.leases[:held], Canceled)
			held = 0
			g.review(leaves, from, end)
			g.finish(lease)
			return nil
		}
	}
	g.finish(lease)
	lease.releaser = g
	held = 0
	return nil
}

// finish writes the combined decision, with nothing to release.
func (g *group) finish(lease *Lease) {
	g.pass = pass{}
	lease.Decision = combine(g.leases)
	lease.releaser, lease.handle.N = (*verdict)(g), mixed
}

func allAllowed(leases []Lease) bool {
	for i := range leases {
		if !leases[i].Allowed {
			return false
		}
	}
	return true
}
