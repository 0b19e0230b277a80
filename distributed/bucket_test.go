package distributed_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestTokenBucketSpendsItsBurstAndNoMore(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(3)))
	for want := int64(2); want >= 0; want-- {
		lease := remote(t, l, "alice", 1)
		require.True(t, lease.Allowed)
		require.Equal(t, want, lease.Remaining)
		require.Equal(t, int64(3), lease.Limit)
	}
	denied := remote(t, l, "alice", 1)
	require.False(t, denied.Allowed)
	require.Equal(t, algo.Quota, denied.Reason)
	require.Greater(t, denied.RetryAfter, 19*time.Minute)
	require.LessOrEqual(t, denied.RetryAfter, 20*time.Minute)
	require.True(t, remote(t, l, "bob", 3).Allowed, "another key")
	require.True(t, remote(t, l, "", 3).Allowed, "the limit's own bucket")
}

func BenchmarkAcquire(b *testing.B) {
	store, server := onRedis(b)
	l := must[*distributed.Limiter](b)(store.TokenBucket("bench", algo.PerSecond(1_000_000)))
	b.Run("lone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = remote(b, l, "alice", 1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(128)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				lease, err := l.Acquire(ctx, "alice", 1)
				if err != nil || lease.Source != algo.SourceRemote {
					b.Error(lease.Source, err)
				}
			}
		})
	})
	blocks := must[*distributed.Limiter](b)(newStore(b, server.Client(), distributed.WithBlocks(100_000),
		distributed.WithInstances(1)).TokenBucket("blocks", algo.PerSecond(1_000_000), algo.Burst(100_000_000)))
	b.Run("blocks", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if lease, err := blocks.Acquire(ctx, "alice", 1); err != nil || !lease.Allowed {
					b.Error(lease.Source, err)
				}
			}
		})
	})
	denied := must[*distributed.Limiter](b)(newStore(b, server.Client(), distributed.WithDenyCache(100)).TokenBucket(
		"denied", algo.PerHour(1)))
	b.Run("denied", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = acquire(b, denied, "alice", 1)
		}
	})
	c := server.Client()
	sha := c.ScriptLoad(ctx, distributed.BucketSource()).Val()
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			c.EvalSha(ctx, sha, []string{"k"}, 0, 1_000_000, 0, 1, 0)
		}
	})
	b.Run("plain-parallel", func(b *testing.B) {
		b.SetParallelism(128)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.EvalSha(ctx, sha, []string{"k"}, 0, 1_000_000, 0, 1, 0)
			}
		})
	})
}

// A denial reads one key and writes nothing.
func TestDenialWritesNothing(t *testing.T) {
	store, server := onRedis(t, distributed.WithInstances(1)) // no heartbeats
	require.NoError(t, store.Ping(ctx))                       // which asks its own questions
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(2)))
	require.True(t, remote(t, l, "alice", 2).Allowed)
	server.Do("CONFIG", "RESETSTAT")
	ttl := server.Do("PTTL", "sluice:{alice}:hourly").(int64)
	for range 20 {
		require.False(t, acquire(t, l, "alice", 1).Allowed)
		require.False(t, acquire(t, l, "alice", 3).Allowed)
	}
	stats := fmt.Sprint(server.Do("INFO", "commandstats"))
	for _, write := range []string{"cmdstat_set:", "cmdstat_del:", "cmdstat_pexpire:"} {
		require.NotContains(t, stats, write)
	}
	require.Contains(t, stats, "cmdstat_get:")
	require.LessOrEqual(t, server.Do("PTTL", "sluice:{alice}:hourly").(int64), ttl, "not renewed")
}

// The clocks of the instances do not matter: the state has the server's time
// alone. Two instances with clocks seconds apart therefore send the very same
// commands, and share one bound.
func TestTwoInstancesShareOneLimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rate := algo.Per(20, time.Second)
	began := time.Now()
	var admitted atomic.Int64
	var group sync.WaitGroup
	for range 2 {
		store := newStore(t, server.Client())
		l := must[*distributed.Limiter](t)(store.TokenBucket("shared", rate))
		for range 4 {
			group.Go(func() {
				for time.Since(began) < 500*time.Millisecond {
					if lease, err := l.Acquire(ctx, "alice", 1); err == nil && lease.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	elapsed := time.Since(began)
	require.LessOrEqual(t, admitted.Load(), 20+int64(20*elapsed.Seconds())+1)
	require.GreaterOrEqual(t, admitted.Load(), int64(20))
}

// The default burst of a rate of which no whole number of microseconds makes up
// the period takes a little more than the period to fill.
func TestDefaultBurstOfAnyRate(t *testing.T) {
	store, _ := onRedis(t)
	const year = 365 * 24 * time.Hour
	for _, n := range []int64{1, 7, 11, 1e6 + 3, year.Microseconds()/2 + 1, year.Microseconds()} {
		for name, make := range map[string]maker{"token bucket": store.TokenBucket, "leaky bucket": store.LeakyBucket} {
			l, err := make(name+strconv.FormatInt(n, 10), algo.Per(n, year))
			require.NoError(t, err)
			require.Equal(t, n, remote(t, l, "k", n).Limit)
			d := remote(t, l, "k", n)
			require.False(t, d.Allowed)
			require.Equal(t, algo.Quota, d.Reason)
			_, err = make("more", algo.Per(n, year), algo.Burst(n+1))
			require.ErrorContains(t, err, "takes longer than 8760h0m0s to fill")
		}
	}
}

func TestPacerSpacesTheStarts(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.Limiter("paced", algo.Must(algo.Parse("pacer 60/min slack 1 queue 3"))))
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
