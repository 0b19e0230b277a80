package algo

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/cause"
)

// Peeker is implemented by limiters with a Peek of their own: it returns the answer that Acquire
// would give now, and charges, counts and waits for nothing. A negative n is [ErrCost].
type Peeker interface {
	Peek(ctx context.Context, key string, n int64) (Decision, error)
}

// Peek returns l.Acquire's current answer for n units, and charges no unit, slot or offence. It looks
// through a [Chooser] and a [Wrapper] of one limiter.
//
// It acquires 0 units of a limiter that is no [Peeker]. If less than n remain, the answer is a denial
// with an estimated RetryAfter of at least 1 s: NextAfter if one unit is missing, ResetAfter otherwise.
func Peek(ctx context.Context, l Limiter, key string, n int64) (d Decision, err error) {
	if n < 0 {
		return d, costError(n)
	}
	if l, err = Resolve(ctx, l, key); err != nil {
		return d, err
	}
	switch t := l.(type) {
	case Peeker:
		return t.Peek(ctx, key, n)
	case Batcher:
		req := Request{l, key, n}
		if t.Batches(req, req) {
			answer := make([]Lease, 1)
			err = peekBatch(ctx, []Request{req}, answer)
			return answer[0].Decision, err
		}
	case Wrapper:
		if inner := t.Unwrap(); len(inner) == 1 {
			return Peek(ctx, inner[0], key, n)
		}
	}
	return peekForeign(ctx, l, key, n)
}

// peekForeign peeks a limiter that has only Acquire.
func peekForeign(ctx context.Context, l Limiter, key string, n int64) (Decision, error) {
	lease, err := l.Acquire(ctx, key, 0)
	if err != nil {
		return Decision{}, fmt.Errorf("peek: %w", err)
	}
	lease.Release(Canceled)
	d := lease.Decision
	if !d.InForce() || !d.Allowed || d.Remaining >= n {
		return d, nil
	}
	d.Allowed, d.Reason, d.RetryAfter = false, Quota, max(d.NextAfter, time.Second)
	if n-d.Remaining > 1 {
		d.RetryAfter = max(d.ResetAfter, d.RetryAfter)
	}
	if about := About(l); about.Unit == ConcurrentRequests {
		d.Cause = cause.Limit
		if about.Shared || key == "" {
			d.Reason = Overload
		}
		if n > d.Limit {
			d.Reason, d.Cause, d.RetryAfter = Never, cause.None, Forever
		}
	}
	return d, nil
}

func addSaturated(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
