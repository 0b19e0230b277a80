package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A busy key is spent in the process.
func TestBlocksSpareRedis(t *testing.T) {
	store, server := onRedis(t, distributed.WithBlocks(1000), distributed.WithInstances(1))
	require.NoError(t, store.Ping(ctx))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(100_000)))
	server.Do("CONFIG", "RESETSTAT")
	sources := map[algo.Source]int{}
	for range 50_000 {
		lease := acquire(t, l, "k", 1)
		require.True(t, lease.Allowed)
		require.Equal(t, int64(100_000), lease.Limit)
		sources[lease.Source]++
	}
	require.Greater(t, sources[algo.SourceBlock], 45_000)
	require.Less(t, evalCalls(server), 1000)
	d := acquire(t, l, "k", 1)
	require.InDelta(t, 49_999, d.Remaining, 60, "a single instance knows its own block")
}

// The Remaining of the last answer from Redis and the units that came back to the
// block since can exceed the limit together; decisions never report more.
func TestBlocksReportAtMostTheLimit(t *testing.T) {
	store, _ := onRedis(t, distributed.WithBlocks(20), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1e6), algo.Burst(100)))
	var held []algo.Lease
	for len(held) < 20 {
		if lease := acquire(t, l, "k", 1); lease.Source == algo.SourceBlock {
			held = append(held, lease)
		}
	}
	for _, n := range []int64{90, 1} { // near the limit, so no new block
		time.Sleep(time.Millisecond) // full again
		require.Equal(t, algo.SourceRemote, acquire(t, l, "k", n).Source)
	}
	for i := range held {
		held[i].Release(algo.Canceled)
	}
	d := acquire(t, l, "k", 1).Decision
	require.Equal(t, algo.SourceBlock, d.Source)
	require.Equal(t, int64(100), d.Limit)
	require.Equal(t, int64(100), d.Remaining)
}

// Near the limit decisions are exact: all of the burst is admitted, and not one
// more.
func TestBlocksAreExactAtTheEnd(t *testing.T) {
	store, _ := onRedis(t, distributed.WithBlocks(50), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(1000)))
	admitted := 0
	for range 1500 {
		if acquire(t, l, "k", 1).Allowed {
			admitted++
		}
	}
	require.Equal(t, 1000, admitted)
}

// Unspent units go back: after a second, and on Close.
func TestBlocksGoBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	exact := must[*distributed.Limiter](t)(newStore(t, server.Client()).TokenBucket("a", algo.PerDay(1000)))
	store := newStore(t, server.Client(), distributed.WithBlocks(100), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(1000)))
	for range 3 {
		acquire(t, l, "k", 1)
	}
	require.Less(t, remote(t, exact, "k", 0).Remaining, int64(950), "a block is out")
	require.Eventually(t, func() bool { return remote(t, exact, "k", 0).Remaining >= 996 }, 10*time.Second, 10*time.Millisecond)
	for range 3 {
		acquire(t, l, "k", 1)
	}
	require.Less(t, remote(t, exact, "k", 0).Remaining, int64(950))
	require.NoError(t, store.Close())
	require.GreaterOrEqual(t, remote(t, exact, "k", 0).Remaining, int64(993))
	require.LessOrEqual(t, remote(t, exact, "k", 0).Remaining, int64(994))
}

func TestBlocksReleaseAndSettle(t *testing.T) {
	store, _ := onRedis(t, distributed.WithBlocks(100), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(1000)))
	fromBlock := func(n int64) algo.Lease {
		for range 100 {
			if lease := acquire(t, l, "k", n); lease.Source == algo.SourceBlock {
				return lease
			}
		}
		t.Fatal("no block")
		return algo.Lease{}
	}
	lease := fromBlock(10)
	left := lease.Remaining
	lease.Release(algo.Canceled)
	lease = fromBlock(10)
	require.Equal(t, left, lease.Remaining, "it came back")
	lease.Settle(3)
	require.Equal(t, left+6, fromBlock(1).Remaining)
	lease.Settle(5)
	require.Equal(t, left+3, fromBlock(1).Remaining)
	require.NoError(t, l.Reset(ctx, "k"))
	require.Equal(t, int64(999), remote(t, l, "k", 1).Remaining)
	require.NoError(t, l.Ban(ctx, "k", time.Hour))
	require.False(t, acquire(t, l, "k", 1).Allowed)
}

// The published bound: Burst + rate*w + maxExcess in any window, with several
// instances, some of which crash with their blocks.
func TestBlocksKeepTheirBound(t *testing.T) {
	t.Parallel()
	const (
		burst, rate, excess, instances = 200, 2000, 120, 4
		length                         = 1500 * time.Millisecond
	)
	server := redistest.Start(t)
	type admission struct{ before, after time.Time }
	var mu sync.Mutex
	var all []admission
	var fromBlocks atomic.Int64
	var group sync.WaitGroup
	stop := time.Now().Add(length)
	run := func(until time.Time) {
		c := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = c.Close() })
		store := newStore(t, c, distributed.WithBlocks(excess), distributed.WithInstances(instances))
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(rate), algo.Burst(burst)))
		for time.Now().Before(until) {
			before := time.Now()
			lease, err := l.Acquire(ctx, "k", 1)
			if err != nil || !lease.Allowed {
				continue
			}
			if lease.Source == algo.SourceBlock {
				fromBlocks.Add(1)
			}
			mu.Lock()
			all = append(all, admission{before, time.Now()})
			mu.Unlock()
			if lease.Remaining > burst/2 { // leave room, so that blocks are taken
				continue
			}
			time.Sleep(time.Millisecond)
		}
	}
	for i := range instances {
		group.Go(func() {
			if i%2 == 0 { // this one crashes: its block is never returned
				run(time.Now().Add(length / 3))
			}
			run(stop)
		})
	}
	group.Wait()
	require.Positive(t, fromBlocks.Load())
	// A window from the moment before the first admission was asked for to the
	// moment after the last was answered holds all of them.
	for i := range all {
		for _, j := range []int{i + burst, i + burst + excess, i + burst + excess + 100, len(all) - 1} {
			if j >= len(all) || j <= i {
				continue
			}
			w := all[j].after.Sub(all[i].before)
			if w < 0 {
				continue
			}
			most := burst + excess + int(float64(rate)*w.Seconds()) + instances
			require.LessOrEqual(t, j-i+1, most, "in %v", w)
		}
	}
}

// Instances that have not been counted take no blocks.
func TestNoBlocksBeforeTheInstancesAreCounted(t *testing.T) {
	store := newStore(t, nowhere(t), distributed.WithBlocks(1000), distributed.WithTimeout(100*time.Millisecond))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	for range 20 {
		require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 1).Source)
	}
}

// Keys that are idle are forgotten, so a flood of them does not keep others
// from having blocks.
func TestIdleKeysAreForgotten(t *testing.T) {
	t.Parallel()
	store, _ := onRedis(t, distributed.WithBlocks(1000), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(10)))
	for i := range 100 {
		acquire(t, l, fmt.Sprint(i), 1)
	}
	require.Positive(t, distributed.BlockKeys(l))
	require.Eventually(t, func() bool { return distributed.BlockKeys(l) == 0 }, 20*time.Second, 50*time.Millisecond)
}
