package guard_test

import (
	"context"
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

var bg = context.Background()

// must and peek fail the test on an error.
func must(t require.TestingT, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(bg, key, n)
	require.NoError(t, err)
	return lease
}

func peek(t require.TestingT, l algo.Limiter, key string) algo.Decision {
	return must(t, l, key, 0).Decision
}

func acquireAll(t require.TestingT, reqs ...algo.Request) algo.Lease {
	lease, err := algo.AcquireAll(bg, reqs...)
	require.NoError(t, err)
	return lease
}

func bucket(r algo.Rate, opts ...algo.Option) *algo.RateLimiter {
	return algo.Must(algo.NewTokenBucket(r, opts...))
}

// limiterFunc is a limiter that other packages might write.
type limiterFunc func(ctx context.Context, key string, n int64) (algo.Lease, error)

func (f limiterFunc) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f(ctx, key, n)
}

// saying answers every request with d.
func saying(d algo.Decision) algo.Limiter {
	return limiterFunc(func(context.Context, string, int64) (algo.Lease, error) {
		return algo.NewLease(d, nil, algo.Handle{}), nil
	})
}

var errBroken = errors.New("broken")

// broken is a backend that is away.
var broken = limiterFunc(func(context.Context, string, int64) (algo.Lease, error) {
	return algo.Lease{}, errBroken
})

// group runs f on n goroutines.
func group(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
