package distributed_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// levels are three limits of one kind, of which one caller is charged to all.
type levels []algo.Request

func newLevels(t *testing.T, store *distributed.Store, rate algo.Rate, algorithm string) (all levels) {
	for _, name := range []string{"user", "path", "tenant"} {
		l := must[*distributed.Limiter](t)(store.Limiter(algorithm+name, algo.Spec{Algorithm: algorithm, Rate: rate}))
		all = append(all, algo.Request{Limiter: l, Key: "k", N: 1})
	}
	return all
}

func (l levels) of(i int) *distributed.Limiter { return l[i].Limiter.(*distributed.Limiter) }

// requireCalls insists on the number of scripts that Redis runs, besides a sign of life.
func requireCalls(t *testing.T, server *redistest.Server, want int, f func()) {
	t.Helper()
	server.Do("CONFIG", "RESETSTAT")
	f()
	require.InDelta(t, want, evalCalls(server), .1)
}

var batched = []string{"token-bucket", "fixed-window"}

// Several buckets, or several fixed windows, are one command.
func TestW4_OneCommandForSeveralLimits(t *testing.T) {
	store, server := onRedis(t, distributed.WithInstances(1))
	require.NoError(t, store.Ping(ctx))
	for _, algorithm := range batched {
		three := newLevels(t, store, algo.PerDay(5), algorithm)
		require.True(t, acquireAll(t, three...).Allowed)
		remote(t, three.of(1), "k", 3)
		requireCalls(t, server, 1, func() {
			lease := acquireAll(t, three...)
			require.True(t, lease.Allowed, algorithm)
			require.Equal(t, int64(3), lease.Parts()[0].Remaining)
			require.Equal(t, int64(0), lease.Parts()[1].Remaining)
		})
		requireCalls(t, server, 1, func() {
			lease := acquireAll(t, three...)
			require.False(t, lease.Allowed, algorithm)
			parts := lease.Parts()
			require.True(t, parts[0].Allowed && !parts[1].Allowed && parts[2].Allowed)
			require.Equal(t, int64(3), parts[0].Remaining)
			require.Positive(t, parts[1].RetryAfter)
		})
		require.Equal(t, int64(3), remote(t, three.of(2), "k", 0).Remaining, "nothing was charged")
	}
}

// Two windows under one key in Redis add up, and a canceled lease gives all of them back.
func TestW4_WindowsOfOneKey(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.FixedWindow("a", algo.PerDay(5)))
	twice := func(n int64) algo.Lease {
		return acquireAll(t, algo.Request{Limiter: l, Key: "k", N: n}, algo.Request{Limiter: l, Key: "k", N: n})
	}
	lease := twice(2)
	require.True(t, lease.Allowed)
	require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining)
	denied := twice(1)
	require.Equal(t, algo.Quota, denied.Reason)
	require.True(t, denied.Parts()[0].Allowed)
	require.Equal(t, algo.Never, twice(3).Reason, "six never fit")
	lease.Release(algo.Canceled)
	require.Equal(t, int64(5), remote(t, l, "k", 0).Remaining)
}

// Denials of all limits that are known cost Redis nothing.
func TestBatchesUseTheDenyCache(t *testing.T) {
	store, server := onRedis(t, distributed.WithInstances(1), distributed.WithDenyCache(100))
	require.NoError(t, store.Ping(ctx))
	for _, algorithm := range batched {
		three := newLevels(t, store, algo.PerDay(2), algorithm)
		for range 2 {
			require.True(t, acquireAll(t, three...).Allowed)
		}
		first := acquireAll(t, three...)
		require.False(t, first.Allowed)
		requireCalls(t, server, 0, func() {
			for range 100 {
				lease := acquireAll(t, three...)
				require.False(t, lease.Allowed)
				require.Equal(t, algo.Quota, lease.Reason)
				for _, d := range lease.Parts() {
					require.Equal(t, algo.SourceDenyCache, d.Source)
					require.InDelta(t, first.RetryAfter, d.RetryAfter, float64(time.Second))
				}
			}
		})
		require.NoError(t, three.of(1).Reset(ctx, "k"))
		lease := acquireAll(t, three...)
		require.False(t, lease.Allowed)
		require.True(t, lease.Parts()[1].Allowed, "it was reset")
		require.Equal(t, algo.SourceRemote, lease.Parts()[0].Source, "one answer for all")
	}
}

// A batch in which a key occurs twice is no proof about the key.
func TestNoProofsOfRepeatedKeys(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100))
	for _, algorithm := range batched {
		l := newLevels(t, store, algo.PerDay(4), algorithm).of(0)
		remote(t, l, "k", 2)
		one := algo.Request{Limiter: l, Key: "k", N: 1}
		denied := acquireAll(t, one, one, one)
		require.Equal(t, algo.Quota, denied.Reason, algorithm)
		require.True(t, denied.Parts()[1].Allowed)
		require.True(t, acquire(t, l, "k", 2).Allowed, algorithm)
	}
}

// Busy keys are spent in the process, by several limits at once too. Whatever becomes of the
// decisions, all limits are charged alike.
func TestBatchesSpendBlocks(t *testing.T) {
	store, server := onRedis(t, distributed.WithBlocks(1000), distributed.WithInstances(1))
	require.NoError(t, store.Ping(ctx))
	three := newLevels(t, store, algo.PerDay(100_000), "token-bucket")
	server.Do("CONFIG", "RESETSTAT")
	var fromBlocks atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for i := range 2500 {
				lease, err := algo.AcquireAll(ctx, three...)
				if err != nil || !lease.Allowed {
					t.Error(lease.Decision, err)
					return
				}
				if lease.Parts()[2].Source == algo.SourceBlock {
					fromBlocks.Add(1)
				}
				if i%10 == 0 {
					lease.Release(algo.Canceled)
				}
			}
		})
	}
	callers.Wait()
	require.Greater(t, fromBlocks.Load(), int64(15_000))
	require.Less(t, evalCalls(server), 4000)
	require.NoError(t, store.Close())
	exact := newStore(t, server.Client())
	for _, name := range []string{"user", "path", "tenant"} {
		l := must[*distributed.Limiter](t)(exact.TokenBucket("token-bucket"+name, algo.PerDay(100_000)))
		require.InDelta(t, 82_000, remote(t, l, "k", 0).Remaining, 50, name)
	}
}

// Near the limit of any of them all decisions are exact, and a denial or a cancellation
// refunds the whole charge.
func TestBatchesWithBlocksAreExactAtTheEnd(t *testing.T) {
	store, server := onRedis(t, distributed.WithBlocks(50), distributed.WithInstances(1), distributed.WithDenyCache(100))
	three := newLevels(t, store, algo.PerDay(3000), "token-bucket")
	three[1].Limiter = must[*distributed.Limiter](t)(store.TokenBucket("tight", algo.PerDay(1000)))
	admitted := 0
	for i := range 1500 {
		lease := acquireAll(t, three...)
		if lease.Allowed {
			admitted++
		}
		if i == 300 {
			lease.Release(algo.Canceled)
			admitted--
		}
	}
	require.Equal(t, 1000, admitted)
	require.NoError(t, store.Close())
	exact := newStore(t, server.Client())
	for name, quota := range map[string]int64{"token-bucketuser": 3000, "tight": 1000, "token-buckettenant": 3000} {
		l := must[*distributed.Limiter](t)(exact.TokenBucket(name, algo.PerDay(quota)))
		require.InDelta(t, quota-1000, remote(t, l, "k", 0).Remaining, 2, name)
	}
}

// A known denial of one limit, beside blocks of the others: they are not spent.
func TestKnownDenialBesideBlocks(t *testing.T) {
	store, server := onRedis(t, distributed.WithBlocks(1000), distributed.WithInstances(1), distributed.WithDenyCache(100))
	require.NoError(t, store.Ping(ctx))
	wide := must[*distributed.Limiter](t)(store.TokenBucket("wide", algo.PerDay(100_000)))
	full := must[*distributed.Limiter](t)(store.TokenBucket("full", algo.PerDay(2)))
	remote(t, full, "k", 2)
	remote(t, full, "k", 1)
	var left int64
	for range 3 {
		left = acquire(t, wide, "k", 1).Remaining
	}
	requireCalls(t, server, 0, func() {
		for range 100 {
			lease := acquireAll(t, algo.Request{Limiter: wide, Key: "k", N: 1}, algo.Request{Limiter: full, Key: "k", N: 1})
			require.False(t, lease.Allowed)
			parts := lease.Parts()
			require.True(t, parts[0].Allowed)
			require.Equal(t, left, parts[0].Remaining)
			require.Equal(t, algo.SourceDenyCache, parts[1].Source)
		}
	})
	d := acquire(t, wide, "k", 1)
	require.Equal(t, algo.SourceBlock, d.Source)
	require.Equal(t, left-1, d.Remaining)
}
