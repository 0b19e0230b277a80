package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// maker is a constructor of a store.
type maker = func(name string, r algo.Rate, opts ...algo.Option) (*distributed.Limiter, error)

func makers(s *distributed.Store) map[string]maker {
	return map[string]maker{
		"token bucket": s.TokenBucket, "leaky bucket": s.LeakyBucket, "fixed window": s.FixedWindow,
		"sliding window": s.SlidingWindow, "sliding log": s.SlidingLog,
	}
}

// Every kind passes the kit that the local limiters pass, on one server, behind
// sentinels and in a cluster.
func TestConformance(t *testing.T) {
	store, server := onRedis(t)
	conform(t, store)
	requireTTL(t, server)
}

func TestConformanceBehindSentinels(t *testing.T) {
	s := redistest.StartSentinels(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs})
	t.Cleanup(func() { _ = c.Close() })
	conform(t, newStore(t, c, distributed.WithTimeout(time.Second)))
	requireTTL(t, s.Master)
}

func TestConformanceInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	conform(t, newStore(t, c, distributed.WithTimeout(time.Second)))
}

func conform(t *testing.T, store *distributed.Store) {
	made := 0
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				made++
				return make(fmt.Sprint(name, made), r, opts...)
			}, algotest.Bound{RealTime: true, Units: func(r algo.Rate, w time.Duration) int64 {
				return 2*r.Count + algotest.BurstPlusRate(r, w)
			}})
		})
	}
}

// U2: after RetryAfter the same request is admitted; Remaining units are
// admitted at once, and the one after them at NextAfter.
func TestRetryAfterAndRemainingAreTrue(t *testing.T) {
	store, _ := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := must[*distributed.Limiter](t)(make(name, algo.Per(8, 80*time.Millisecond)))
			rnd := rand.New(rand.NewPCG(5, 6))
			for range 30 {
				n := 1 + rnd.Int64N(8)
				lease := remote(t, l, "k", n)
				if lease.Allowed {
					require.Equal(t, algo.Admitted, lease.Reason)
					require.Zero(t, lease.RetryAfter)
					continue
				}
				require.Equal(t, algo.Quota, lease.Reason)
				require.Positive(t, lease.RetryAfter)
				require.LessOrEqual(t, lease.RetryAfter, 160*time.Millisecond)
				require.Less(t, lease.Remaining, n)
				require.LessOrEqual(t, lease.NextAfter, lease.ResetAfter)
				time.Sleep(lease.RetryAfter)
				require.True(t, remote(t, l, "k", n).Allowed, "%+v", lease.Decision)
			}
			time.Sleep(161 * time.Millisecond)
			fresh := remote(t, l, "k", 0)
			require.Equal(t, int64(8), fresh.Remaining)
			require.Zero(t, fresh.NextAfter)
			require.Zero(t, fresh.ResetAfter)
		})
	}
}

func TestWindowsGiveBackAndSettle(t *testing.T) {
	store, server := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(make(name, algo.PerDay(10)))
			left := func() int64 { return remote(t, l, "k", 0).Remaining }
			a, b := remote(t, l, "k", 4), remote(t, l, "k", 3)
			require.Equal(t, int64(3), left())
			a.Release(algo.Canceled)
			require.Equal(t, int64(7), left())
			b.Settle(1)
			require.Equal(t, int64(9), left())
			b.Settle(5)
			require.Equal(t, int64(5), left())
			b.Release(algo.Canceled)
			require.GreaterOrEqual(t, left(), int64(9), "less what has drained since the charge")
			require.NoError(t, l.Block(ctx, "k", 48*time.Hour))
			blocked := remote(t, l, "k", 1)
			require.False(t, blocked.Allowed)
			require.InDelta(t, 48*time.Hour, blocked.RetryAfter, float64(5*time.Second))
			require.Zero(t, left())
			require.NoError(t, l.Reset(ctx, "k"))
			require.Equal(t, int64(10), left())
			require.NoError(t, l.SetRate(algo.PerDay(3)))
			require.Equal(t, int64(3), remote(t, l, "k", 0).Limit)
			require.Equal(t, algo.Never, remote(t, l, "k", 4).Reason)
		})
	}
	requireTTL(t, server)
}

// A sliding log holds at most its quota in any window.
func TestSlidingLogBound(t *testing.T) {
	store, _ := onRedis(t)
	const period = 60 * time.Millisecond
	l := must[*distributed.Limiter](t)(store.SlidingLog("log", algo.Per(5, period)))
	type admission struct{ before, after time.Time }
	var all []admission
	for began := time.Now(); time.Since(began) < 400*time.Millisecond; {
		before := time.Now()
		if remote(t, l, "k", 1).Allowed {
			all = append(all, admission{before, time.Now()})
		}
	}
	require.Greater(t, len(all), 10)
	for i := 5; i < len(all); i++ {
		require.GreaterOrEqual(t, all[i].after.Sub(all[i-5].before), period)
	}
}

func TestPacerSpacesTheStarts(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.Pacer("paced", algo.PerMinute(60), algo.Slack(1), algo.MaxQueue(3)))
	var delays []time.Duration
	for range 5 {
		lease := remote(t, l, "k", 1)
		require.True(t, lease.Allowed)
		delays = append(delays, lease.Delay)
	}
	for i, want := range []time.Duration{0, 0, 1, 2, 3} {
		require.InDelta(t, want*time.Second, delays[i], float64(500*time.Millisecond))
	}
	denied := remote(t, l, "k", 1)
	require.False(t, denied.Allowed)
	require.LessOrEqual(t, denied.RetryAfter, time.Second)
}

// An admission with a Delay is given back whole until it starts.
func TestMaxWaitDelaysAndIsGivenBack(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("guava", algo.PerMinute(1), algo.Burst(2), algo.MaxWait(algo.Forever)))
	require.True(t, remote(t, l, "k", 2).Allowed)
	lease := remote(t, l, "k", 3)
	require.True(t, lease.Allowed)
	require.InDelta(t, 3*time.Minute, lease.Delay, float64(5*time.Second))
	lease.Release(algo.Canceled)
	require.InDelta(t, time.Minute, remote(t, l, "k", 1).Delay, float64(5*time.Second))
	timed := must[*distributed.Limiter](t)(store.TokenBucket("timed", algo.PerMinute(1), algo.MaxWait(90*time.Second)))
	require.Zero(t, remote(t, timed, "k", 1).Delay)
	require.Positive(t, remote(t, timed, "k", 1).Delay)
	require.False(t, remote(t, timed, "k", 1).Allowed, "two minutes are too long")
}

func TestOptionsThatDoNotBelongAreErrors(t *testing.T) {
	store := newStore(t, nowhere(t))
	for _, tc := range []struct {
		make maker
		opt  algo.Option
		says string
	}{
		{store.TokenBucket, algo.Cells(3), "Cells"},
		{store.LeakyBucket, algo.MaxWait(1), "MaxWait"},
		{store.FixedWindow, algo.Spread(), "does not take the option Spread, only MaxKeys, OnFull"},
		{store.SlidingWindow, algo.Cells(3), "does not take the option Cells, only MaxKeys, OnFull"},
		{store.SlidingLog, algo.Burst(3), "Burst"},
		{store.Pacer, algo.Burst(3), "Burst"},
	} {
		_, err := tc.make("a", algo.PerSecond(1), tc.opt)
		require.ErrorContains(t, err, tc.says)
		require.ErrorContains(t, err, `"a"`)
	}
	for name, make := range makers(store) {
		_, err := make(name, algo.PerSecond(1), algo.MaxKeys(100), algo.OnFull(algo.DenyNew))
		require.NoError(t, err)
	}
	_, err := store.SlidingWindow("big", algo.PerDay(1_000_000))
	require.ErrorContains(t, err, "count is 1000000, want 104249 at most")
	for _, n := range []int64{10_001, 1_000_000} { // the latter is more than algo.SlidingLog takes
		_, err = store.SlidingLog("big", algo.PerDay(n))
		require.EqualError(t, err, fmt.Sprintf(`distributed: sliding log "big": rate: count is %d, want 10000 at most`, n))
	}
	l := must[*distributed.Limiter](t)(store.FixedWindow("w", algo.PerSecond(1)))
	require.ErrorContains(t, l.SetBurst(3), "has no burst")
	_, err = store.TokenBucket("w", algo.PerSecond(1))
	require.ErrorContains(t, err, `"w": the name is taken by a fixed window`)
}
