package meter

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// AtMost acquires as many units of l under key as fit now, up to n, for work that can be divided: a
// batch, a buffer, pages of a list. It returns the number of units in the lease; 0 with the
// decision that denied the first unit. It never waits.
//
// It asks for n, then for the Remaining units of the denial: two decisions if less than n fits,
// more only while others spend concurrently. All limits keep their bounds: only the units of the
// lease are charged. The error is [algo.ErrCost] for an n below 1, or l's error.
func AtMost(ctx context.Context, l algo.Limiter, key string, n int64) (lease algo.Lease, units int64, err error) {
	if n < 1 {
		return lease, 0, fmt.Errorf("%w: n is %d, want 1 or more", algo.ErrCost, n)
	}
	ctx = algo.Tentative(ctx)
	for units = n; ; units = lease.Remaining {
		if lease, err = l.Acquire(ctx, key, units); err != nil {
			return algo.Lease{}, 0, err
		}
		switch {
		case lease.Allowed:
			return lease, units, nil
		case lease.Remaining < 1 || lease.Remaining >= units: // less would not help
			return lease, 0, nil
		}
	}
}
