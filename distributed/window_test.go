package distributed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestW2_CalendarWindowsOfInstances: two instances and a local limiter have the
// same windows and count the same units; a settlement refunds units in its window.
func TestW2_CalendarWindowsOfInstances(t *testing.T) {
	store, server := onRedis(t)
	other := newStore(t, server.Client())
	spec := must[algo.Spec](t)(algo.Parse("fixed-window 50000000/month zone Europe/Berlin start 31"))
	a, b := must[*distributed.Limiter](t)(store.Limiter("w", spec)), must[*distributed.Limiter](t)(other.Limiter("w", spec))
	local := must[algo.Limiter](t)(spec.New())
	first := remote(t, a, "k", 30_000_000)
	require.False(t, remote(t, b, "k", 30_000_000).Allowed)
	require.InDelta(t, acquire(t, local, "k", 1).ResetAfter, first.ResetAfter, float64(5*time.Second))
	first.Settle(10_000_000)
	require.Eventually(t, func() bool { return remote(t, b, "k", 0).Remaining == 40_000_000 }, 10*time.Second, time.Millisecond)
	over := remote(t, b, "k", 40_000_000)
	over.Settle(60_000_000)             // 20 million are debt in the next window
	require.Eventually(t, func() bool { // the settlement arrives by itself
		return remote(t, a, "k", 30_000_001).RetryAfter > first.ResetAfter+27*24*time.Hour
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, a.Reset(ctx, "k"))
	require.EqualValues(t, 50_000_000, remote(t, b, "k", 0).Remaining)
}

// A stream that is metered on Redis takes a round trip for each block.
func TestMeterOnRedis(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("tokens", algo.PerDay(10_000)))
	trips := 0
	counted := algo.Limiter(limiterFunc(func(c context.Context, key string, n int64) (algo.Lease, error) {
		trips++
		return l.Acquire(c, key, n)
	}))
	m := must[*meter.Meter](t)(meter.Start(ctx, counted, "k", 100, 100))
	for range 50 {
		d, err := m.Reserve(ctx, 11)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		m.Use(11)
	}
	require.Equal(t, 6, trips)
	m.Close()
	require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == 10_000-550 }, 10*time.Second, time.Millisecond)
}

type limiterFunc func(ctx context.Context, key string, n int64) (algo.Lease, error)

func (f limiterFunc) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f(ctx, key, n)
}

// A raised quota applies at once, in units; a changed period keeps the units of
// a window that has not ended.
func TestFixedWindowChangesInUse(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.FixedWindow("w", algo.PerDay(3)))
	require.True(t, remote(t, l, "k", 3).Allowed)
	require.False(t, remote(t, l, "k", 1).Allowed)
	require.NoError(t, l.SetRate(algo.PerDay(5)))
	require.Equal(t, int64(2), remote(t, l, "k", 0).Remaining)
	for _, period := range []time.Duration{time.Hour, 7 * 24 * time.Hour, 36 * time.Hour} {
		require.NoError(t, l.SetRate(algo.Per(5, period)))
		require.Equal(t, int64(2), remote(t, l, "k", 0).Remaining, "%v", period)
	}
	require.NoError(t, algo.Spec{Algorithm: "fixed-window", Rate: algo.PerDay(9)}.Apply(l))
	require.Equal(t, int64(6), remote(t, l, "k", 0).Remaining)
	require.ErrorContains(t, algo.Spec{Rate: algo.PerDay(9)}.Apply(l), "cannot be changed in use")
}

// TestWindowsOfOtherEdges: instances whose windows have one name, length and quota, and other
// edges, are reported; those that agree are not.
func TestWindowsOfOtherEdges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		specs [2]string
		mixed bool
	}{
		{[2]string{"fixed-window 1000/day zone UTC", "fixed-window 1000/day zone Asia/Tokyo"}, true},
		{[2]string{"fixed-window 1000/week zone UTC", "fixed-window 1000/week start 3 zone UTC"}, true},
		{[2]string{"fixed-window 1000/h", "fixed-window 1000/h offset 20m"}, true},
		{[2]string{"fixed-window 1000/day zone UTC", "fixed-window 1000/day zone UTC"}, false},
		{[2]string{"fixed-window 1000/day zone UTC", "fixed-window 1000/day zone Africa/Abidjan"}, false},
		{[2]string{"fixed-window 1000/s spread", "fixed-window 1000/s spread"}, false},
	} {
		t.Run(tc.specs[1], func(t *testing.T) {
			t.Parallel()
			var e events
			limits := sideBySide(t, redistest.Start(t), new(textLog), &e, tc.specs[:]...)
			for range 50 {
				for _, l := range limits {
					lease := remote(t, l, "k", 2)
					lease.Settle(1)
				}
			}
			require.Equal(t, tc.mixed, e.count(distributed.MixedParameters) > 0)
		})
	}
}

// TestRefundsAfterAChangedQuota: units that are given back after the quota has changed can be
// spent again, and no more than the quota.
func TestRefundsAfterAChangedQuota(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, _ *redistest.Wire) {
		store := newStore(t, c)
		for _, algorithm := range []string{"token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "sliding-log"} {
			for _, next := range []int64{10, 40} {
				l := must[*distributed.Limiter](t)(store.Limiter(algorithm, algo.Spec{Algorithm: algorithm, Rate: algo.PerDay(20)}))
				key := fmt.Sprint(algorithm, next)
				lease := remote(t, l, key, 15)
				other := remote(t, l, key, 2)
				require.True(t, lease.Allowed && other.Allowed)
				require.NoError(t, l.SetRate(algo.PerDay(next)))
				lease.Release(algo.Canceled)
				require.Eventually(t, func() bool { return remote(t, l, key, 0).Remaining >= next-4 }, time.Second, 10*time.Millisecond,
					"%s %d", algorithm, next)
				require.NoError(t, l.Close())
			}
		}
	})
}
