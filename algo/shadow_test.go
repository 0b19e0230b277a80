package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestShadowDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerMinute(1), algo.MaxWait(30*time.Second))
		l := algo.Shadow(inner)
		first := must(t, l, "k", 1)
		require.Equal(t, algo.SourceShadowed, first.Source, "nothing may act on it")
		require.Equal(t, algo.Admitted, first.Reason)
		require.Zero(t, first.RetryAfter)

		denied := must(t, l, "k", 1)
		require.True(t, denied.Allowed)
		require.Equal(t, algo.SourceShadowed, denied.Source)
		require.Equal(t, algo.Quota, denied.Reason)
		require.Equal(t, 30*time.Second, denied.RetryAfter)
		denied.Release(algo.Canceled)
		require.Zero(t, peek(t, inner, "k").Remaining, "nothing was charged, nothing given back")

		time.Sleep(30 * time.Second)
		delayed := must(t, l, "k", 1)
		require.True(t, delayed.Allowed)
		require.Zero(t, delayed.Delay)
		require.Equal(t, algo.SourceShadowed, delayed.Source)
		require.Equal(t, algo.Admitted, delayed.Reason)
		require.Equal(t, 30*time.Second, delayed.RetryAfter)
	})
}

// A limit on trial leaves the description of a composition to the others.
func TestShadowInAComposition(t *testing.T) {
	trial, real := algo.Shadow(bucket(algo.PerHour(1))), bucket(algo.PerHour(5))
	both := func() algo.Decision {
		return acquireAll(t, algo.Request{Limiter: trial, Key: "k", N: 1}, algo.Request{Limiter: real, Key: "k", N: 1}).Decision
	}
	d := both()
	require.Equal(t, algo.SourceLocal, d.Source)
	require.Equal(t, int64(4), d.Remaining)
	require.Equal(t, algo.SourceShadowed, both().Source, "it would have been denied")
	lease := acquireAll(t, algo.Request{Limiter: trial, Key: "a", N: 1}, algo.Request{Limiter: trial, Key: "b", N: 1})
	require.Equal(t, algo.SourceShadowed, lease.Source)
}

func TestShadowOfABrokenLimiter(t *testing.T) {
	lease := must(t, algo.Shadow(broken), "k", 1)
	require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceShadowed}, lease.Decision)
	lease = acquireAll(t, algo.Request{Limiter: algo.Shadow(broken), N: 1}, algo.Request{Limiter: bucket(algo.PerHour(2)), N: 1})
	require.True(t, lease.Allowed)
	require.Equal(t, int64(1), lease.Remaining)
}

// A new limit, tried on live traffic.
func ExampleShadow() {
	limiter := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
	for range 2 {
		lease, _ := limiter.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Source, lease.Reason, lease.RetryAfter.Round(time.Minute))
		lease.Release(algo.Succeeded)
	}
	// Output:
	// true shadowed admitted 0s
	// true shadowed quota 1h0m0s
}
