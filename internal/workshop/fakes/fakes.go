// Package fakes has the limiters and helpers that the tests of several packages share.
package fakes

import (
	"context"
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// Acquire expects a decision, whatever it is.
func Acquire(t require.TestingT, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(context.Background(), key, n)
	if err != nil { // require takes longer than a limiter
		require.NoError(t, err)
	}
	return lease
}

// AcquireAll is Acquire for several limits.
func AcquireAll(t require.TestingT, reqs ...algo.Request) algo.Lease {
	lease, err := algo.AcquireAll(context.Background(), reqs...)
	require.NoError(t, err)
	return lease
}

// Look asks for no unit.
func Look(t require.TestingT, l algo.Limiter, key string) algo.Decision {
	return Acquire(t, l, key, 0).Decision
}

// Fill acquires until one is denied, at most that often, and returns the leases.
func Fill(t require.TestingT, l algo.Limiter, most int) (leases []algo.Lease) {
	for range most {
		lease := Acquire(t, l, "", 1)
		if !lease.Allowed {
			break
		}
		leases = append(leases, lease)
	}
	return leases
}

// ReleaseAll releases leases.
func ReleaseAll(leases []algo.Lease, o algo.Outcome) {
	for i := range leases {
		leases[i].Release(o)
	}
}

// Bucket makes a token bucket.
func Bucket(r algo.Rate, opts ...algo.Option) *algo.RateLimiter {
	return algo.Must(algo.NewTokenBucket(r, opts...))
}

// Func is a limiter that other packages might write. It cannot be compared.
type Func func(ctx context.Context, key string, n int64) (algo.Lease, error)

// Acquire implements algo.Limiter.
func (f Func) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f(ctx, key, n)
}

// Saying answers every request with d.
func Saying(d algo.Decision) algo.Limiter {
	return Func(func(context.Context, string, int64) (algo.Lease, error) {
		return algo.NewLease(d, nil, algo.Handle{}), nil
	})
}

// ErrBroken is the error of Broken.
var ErrBroken = errors.New("broken")

// Broken is a backend that is away.
var Broken = Func(func(context.Context, string, int64) (algo.Lease, error) {
	return algo.Lease{}, ErrBroken
})

// Group runs f in n goroutines and waits for them.
func Group(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
