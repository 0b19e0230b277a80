package algo

import "context"

// AtMost acquires what fits now, up to n units of l under key, for work that can be
// divided: a batch, a buffer, pages of a list. It returns how many units the lease has;
// 0 with the decision that denied the first. It never waits.
//
// It asks for n (a ban without being counted: one decision more, and on Redis one round
// trip), and then for what the denial says remains, so it takes two decisions
// where less than n fits, and more only while others spend at the same time. All limits
// keep their bounds: nothing is charged but the units of the lease. n is 1 or more, else
// the error is [ErrCost]; other errors are those of l.
func AtMost(ctx context.Context, l Limiter, key string, n int64) (lease Lease, units int64, err error) {
	if n < 1 {
		return Lease{}, 0, costError(n)
	}
	if n > 1 {
		if d, denies := denialCounts(ctx, l, key, n); denies && d.Remaining > 0 {
			n = min(n, d.Remaining)
		}
	}
	for units = n; ; units = lease.Remaining {
		if lease, err = l.Acquire(ctx, key, units); err != nil {
			return Lease{}, 0, err
		}
		switch {
		case lease.Allowed:
			return lease, units, nil
		case lease.Remaining < 1 || lease.Remaining >= units: // less would not help
			return lease, 0, nil
		}
	}
}
