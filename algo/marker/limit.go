package marker

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Limit makes a limiter that admits requests that m marks pass or greener, and denies redder ones. All
// requests come in as Green. With Red it admits everything. It panics if m is nil or pass is no color.
//
// With the markers of this package it is an [*algo.RateLimiter], and a denial charges no bucket, so
// limiters of several colors over one marker make one consistent set. RetryAfter is exact. Limit and
// Remaining count single units; a request is never split between two buckets.
//
// Canceled refunds the cost minus the units refilled since, and less if the debt before the charge was
// large. Settle moves the cost in the same buckets. It does not refund units charged beyond the first
// cost, for which a bucket goes into debt by at most its size, nor charges from before a settlement that
// exceeded this debt.
//
// With any other marker, that marker decides how denied requests count, nothing is refunded, Limit and
// Remaining are unknown (0), and RetryAfter is one second.
func Limit(m Marker, pass Color) algo.Limiter {
	if m == nil {
		panic("marker: Limit: the marker is nil")
	}
	if pass > Red {
		panic(fmt.Sprintf("marker: Limit: pass is %d, want Green, Yellow or Red", pass))
	}
	if own, ok := m.(*ThreeColor); ok {
		return own.limiter(pass)
	}
	return &foreign{m, pass}
}

// foreign limits by a marker of another package.
type foreign struct {
	marker Marker
	pass   Color
}

// About states no quota.
func (*foreign) About() algo.Description { return algo.Description{} }

// Acquire implements [algo.Limiter].
func (f *foreign) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	color := Green
	if n > 0 {
		color, err = f.marker.Mark(ctx, key, n, Green)
	}
	switch {
	case err != nil:
		return lease, err
	case color > f.pass:
		lease.Decision = algo.Decision{Reason: algo.Quota, RetryAfter: time.Second}
	default:
		lease.Allowed = true
	}
	return lease, nil
}

func costError(n int64) error { return fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n) }
