package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

func TestShadowDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerMinute(1), algo.MaxWait(30*time.Second))
		l := algo.Shadow(inner)
		first := must(t, l, "k", 1)
		require.Equal(t, algo.SourceTrial, first.Source, "nothing may act on it")
		require.Equal(t, algo.Admitted, first.Reason)
		require.Zero(t, first.RetryAfter)

		denied := must(t, l, "k", 1)
		require.True(t, denied.Allowed)
		require.Equal(t, algo.SourceTrial, denied.Source)
		require.Equal(t, algo.Quota, denied.Trial)
		require.Equal(t, algo.Admitted, denied.Reason)
		require.Equal(t, 30*time.Second, denied.RetryAfter)
		denied.Release(algo.Canceled)
		require.Zero(t, peek(t, inner, "k").Remaining, "nothing was charged, nothing given back")

		time.Sleep(30 * time.Second)
		delayed := must(t, l, "k", 1)
		require.True(t, delayed.Allowed)
		require.Zero(t, delayed.Delay)
		require.Equal(t, algo.SourceTrial, delayed.Source)
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
	d = both()
	require.Equal(t, algo.SourceLocal, d.Source)
	require.Equal(t, algo.Quota, d.Trial, "it would have been denied")
	lease := acquireAll(t, algo.Request{Limiter: trial, Key: "a", N: 1}, algo.Request{Limiter: trial, Key: "b", N: 1})
	require.Equal(t, algo.SourceTrial, lease.Source)
}

func TestShadowOfABrokenLimiter(t *testing.T) {
	lease := must(t, algo.Shadow(broken), "k", 1)
	require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceTrial}, lease.Decision)
	lease = acquireAll(t, algo.Request{Limiter: algo.Shadow(broken), N: 1}, algo.Request{Limiter: bucket(algo.PerHour(2)), N: 1})
	require.True(t, lease.Allowed)
	require.Equal(t, int64(1), lease.Remaining)
}

// A new limit, tried on live traffic.
func ExampleShadow() {
	limiter := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
	for range 2 {
		lease, _ := limiter.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Source, lease.Trial, lease.RetryAfter.Round(time.Minute))
		lease.Release(algo.Succeeded)
	}
	// Output:
	// true trial admitted 0s
	// true trial quota 1h0m0s
}

// TestTrialSwitchesNothingOff: a limit on trial, or one that is off, beside FailuresOnly changes
// neither how many guesses pass nor what the limits in force say.
func TestTrialSwitchesNothingOff(t *testing.T) {
	banned := func() algo.Limiter {
		b := algo.Must(guard.NewBan(bucket(algo.PerHour(1)), algo.PerHour(1), time.Hour, time.Hour))
		must(t, b, "k", 1)
		must(t, b, "k", 1)
		return b
	}
	off := algo.NewSwitch(bucket(algo.PerHour(1)))
	off.Off()
	in(t, map[string]algo.Limiter{
		"spent": algo.Shadow(bucket(algo.PerHour(1))), "banned": algo.Shadow(banned()), "denied": algo.Shadow(algo.DenyAll()),
		"unavailable": algo.Shadow(broken), "off": off,
	}, func(t *testing.T, trial algo.Limiter) {
		l := guard.FailuresOnly(algo.All(bucket(algo.PerHour(5)), trial))
		passed := 0
		for range 100 {
			lease := must(t, l, "k", 1)
			if lease.Allowed {
				require.EqualValues(t, 5, lease.Limit)
				passed++
			}
			lease.Release(algo.Failed)
		}
		require.Equal(t, 5, passed)
	})
}
