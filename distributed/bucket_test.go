package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
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
	sha := c.ScriptLoad(ctx, distributed.BucketSource).Val()
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
