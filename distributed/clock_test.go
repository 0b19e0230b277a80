package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestClockOfTheLocalHalf: without Redis each limit decides by the clock that was given: its
// part of the limit, and costs that are saved for; after a change too.
func TestClockOfTheLocalHalf(t *testing.T) {
	clock := fakes.ClockAt(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
	store, on := oneOf(t, 2), algo.Clock(clock.Now)
	for _, text := range []string{"10/h", "leaky-bucket 10/h", "pacer 10/h queue 9 slack 9", "fixed-window 10/h", "fixed-window 10/day zone UTC", "sliding-window 10/h", "sliding-log 10/h", "1/h", "fixed-window 1/h"} {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		bare := spec
		spec, err = spec.With(on)
		require.NoError(t, err)
		l := must[*distributed.Limiter](t)(store.Limiter(text, spec))
		for range 3 {
			for acquire(t, l, "k", 1).Allowed {
			}
			clock.Advance(48 * time.Hour)
			require.True(t, acquire(t, l, "k", 1).Allowed, text)
			require.NoError(t, bare.Apply(l), "a Spec without a clock")
			if !spec.Given("zone") && spec.Rate.Count > 1 {
				require.NoError(t, l.SetRate(algo.PerHour(9)))
			}
		}
	}
	wall := fakes.ClockAt(time.Now())
	l := must[*distributed.Limiter](t)(store.FixedWindow("monthly", algo.Per(2, algo.Month), algo.Zone("UTC"), algo.Clock(wall.Now)))
	require.True(t, acquire(t, l, "k", 1).Allowed)
	require.False(t, acquire(t, l, "k", 1).Allowed)
	wall.Step(40 * 24 * time.Hour)
	wall.Advance(time.Second)
	require.True(t, acquire(t, l, "k", 1).Allowed, "the machine was suspended")
	l = must[*distributed.Limiter](t)(store.TokenBucket("saves", algo.PerHour(10), on))
	d := acquire(t, l, "k", 8)
	require.Equal(t, algo.Overload, d.Reason, "more than its part of 5")
	clock.Advance(d.RetryAfter - 1)
	require.False(t, acquire(t, l, "k", 8).Allowed)
	clock.Advance(1)
	require.True(t, acquire(t, l, "k", 8).Allowed)
	all := must[*distributed.Shares](t)(store.Shares("shares", algo.PerHour(10), map[string]int64{"a": 5}, on))
	for acquire(t, all.Child("a"), "k", 1).Allowed {
	}
	clock.Advance(2 * time.Hour)
	require.True(t, acquire(t, all.Child("a"), "k", 1).Allowed)
}

// TestClockIsKept: a Spec with a clock does not change the clock in use; and one that is set back
// does not make a cost wait longer than when it was first asked for.
func TestClockIsKept(t *testing.T) {
	clock, store := fakes.ClockAt(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)), oneOf(t, 2)
	l := must[*distributed.Limiter](t)(store.TokenBucket("system", algo.PerHour(10)))
	spec := must[algo.Spec](t)(algo.Spec{Rate: algo.PerHour(10)}.With(algo.Clock(clock.Now)))
	require.NoError(t, spec.Apply(l))
	require.Equal(t, algo.Overload, acquire(t, l, "k", 8).Reason)
	clock.Advance(10 * time.Hour)
	require.False(t, acquire(t, l, "k", 8).Allowed, "by the system's clock")

	l = must[*distributed.Limiter](t)(store.TokenBucket("back", algo.PerHour(10), algo.Clock(clock.Now)))
	wait := acquire(t, l, "k", 8).RetryAfter
	clock.Advance(-100 * time.Hour)
	require.LessOrEqual(t, acquire(t, l, "k", 8).RetryAfter, wait)
	clock.Advance(wait)
	require.True(t, acquire(t, l, "k", 8).Allowed)
}
