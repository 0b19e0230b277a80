package algo

import (
	"context"
	"fmt"
	"time"
)

// Wait acquires n units of l under key, sleeping as long as it takes: a Delay
// is slept out, and after a quota denial it tries again at RetryAfter.
//
// The error is nil exactly when the units are charged and the work may start.
// It is ErrWait, at once, when the context's deadline comes sooner than
// admission would, or when l denies for overload, which no waiting caller can
// foresee, or without a RetryAfter; ErrCost when n can never fit; the context's error when it ends
// during the sleep. In all these cases nothing stays charged.
//
// Callers that wait for a denial compete again when they wake; a limiter with
// [MaxWait] serves them in the order of arrival.
func Wait(ctx context.Context, l Limiter, key string, n int64) (Lease, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Lease{}, err
		}
		lease, err := l.Acquire(ctx, key, n)
		if err != nil {
			return Lease{}, err
		}
		if lease.Allowed {
			return start(ctx, lease)
		}
		switch lease.Reason {
		case Never:
			return Lease{}, fmt.Errorf("%w: n is %d, the limit holds %d", ErrCost, n, lease.Limit)
		case Overload:
			return Lease{}, fmt.Errorf("%w: denied for overload", ErrWait)
		}
		if lease.RetryAfter <= 0 {
			return Lease{}, fmt.Errorf("%w: denied with no time to retry after", ErrWait)
		}
		if err := Sleep(ctx, lease.RetryAfter); err != nil {
			return Lease{}, err
		}
	}
}

// start sleeps out the Delay of an admission, and gives it back if the context
// ends first.
func start(ctx context.Context, lease Lease) (Lease, error) {
	if err := Sleep(ctx, lease.Delay); err != nil {
		lease.Release(Canceled)
		return Lease{}, err
	}
	return lease, nil
}

// Sleep waits for d, or returns ErrWait at once if the context's deadline
// comes sooner, or the context's error when it ends meanwhile. Adapters sleep
// out a Delay with it.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return fmt.Errorf("%w: %v is more than is left of it", ErrWait, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
