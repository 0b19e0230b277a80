package algo

import (
	"context"
	"fmt"
	"time"
)

// Wait acquires n units of l under key and sleeps until the work may start: for
// the Delay of an admission, and for the RetryAfter of a quota denial, after
// which it tries again.
//
// The error is nil exactly when the units are charged and the work may start.
// Otherwise nothing stays charged, and the error is:
//
//   - [ErrWait], without a sleep, when the context's deadline comes before
//     admission would, when l denies for overload, whose end is unknown, or
//     when l denies without a RetryAfter;
//   - [ErrCost] when n can never fit;
//   - the context's error when the context ends during the sleep.
//
// After a denial, waiting callers compete again when they wake. A limiter with
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
			return Lease{}, fmt.Errorf("%w: n is %d, more than the limit of %d", ErrCost, n, lease.Limit)
		case Overload:
			return Lease{}, fmt.Errorf("%w: denied for overload", ErrWait)
		}
		if lease.RetryAfter <= 0 {
			return Lease{}, fmt.Errorf("%w: denied without a RetryAfter", ErrWait)
		}
		if err := Sleep(ctx, lease.RetryAfter); err != nil {
			return Lease{}, err
		}
	}
}

// start sleeps for the Delay of an admission, and gives the admission back if
// the context ends first.
func start(ctx context.Context, lease Lease) (Lease, error) {
	if err := Sleep(ctx, lease.Delay); err != nil {
		lease.Release(Canceled)
		return Lease{}, err
	}
	return lease, nil
}

// Sleep sleeps for d. If the context's deadline comes sooner it returns
// [ErrWait] without a sleep; if the context ends during the sleep it returns the
// context's error. Adapters use it for a Delay.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < d {
			return fmt.Errorf("%w: the context ends in %v, admission comes in %v", ErrWait, left, d)
		}
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
