package distributed_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// spendAll acquires from all limiters at once until d has passed, and returns the
// number of admitted units.
func spendAll(limiters []*distributed.Limiter, key string, d time.Duration) int64 {
	var admitted atomic.Int64
	var group sync.WaitGroup
	for _, l := range limiters {
		group.Go(func() {
			for began := time.Now(); time.Since(began) < d; {
				if lease, err := l.Acquire(ctx, key, 1); err == nil && lease.Allowed {
					admitted.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	group.Wait()
	return admitted.Load()
}

// TestW3_ColdStartsOfSmallLimits: an instance that has not been counted has at least a unit.
func TestW3_ColdStartsOfSmallLimits(t *testing.T) {
	t.Parallel()
	const instances = 8
	f := startFleet(t, instances, "127.0.0.1:1", algo.PerHour(instances))
	require.Equal(t, int64(instances), spendAll(f.limiters, "k", time.Second))
}

// TestW3_FirstShareIsOfTheLastKnownNumber: instances that replace others assume as
// many.
func TestW3_FirstShareIsOfTheLastKnownNumber(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	server := redistest.Start(t)
	f := startFleet(t, 3, server.Addr(), algo.PerHour(300))
	f.settled(t)
	time.Sleep(2500 * time.Millisecond) // a heartbeat that reports it to Redis
	for _, l := range f.limiters {
		require.NoError(t, distributed.StoreOf(l).Close())
	}
	next := startFleet(t, 1, server.Addr(), algo.PerHour(300))
	require.NoError(t, distributed.StoreOf(next.limiters[0]).Ping(ctx))
	require.Equal(t, 3, distributed.StoreOf(next.limiters[0]).Stats().Instances)
}

// TestServicesDoNotCountEachOther: services with limits of their own, on one Redis.
func TestServicesDoNotCountEachOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, service := range []string{"a", "b", "b", "b:c"} {
		store := newStore(t, server.Client(), distributed.WithService(service))
		require.NoError(t, store.Ping(ctx))
		for key, n := range map[string]int64{"a": 1, "b": min(int64(i), 2), "b%3Ac": int64(i / 3)} {
			require.Equal(t, n, server.Do("ZCARD", "sluice:{::instances:"+key+"}"), "%s, step %d", key, i)
		}
	}
	requireTTL(t, server)
	_, err := distributed.New(server.Client(), distributed.WithService(strings.Repeat("x", 201)))
	require.ErrorContains(t, err, "WithService: has 201 bytes")
	_, err = distributed.New(server.Client(), distributed.WithAssumedInstances(0))
	require.ErrorContains(t, err, "WithAssumedInstances: is 0, want 1 or more")
}

// TestHeartbeatsAreCheap: the time that Redis spends on a heartbeat grows with the
// logarithm of the number of instances. It compares the server's own measurements.
func TestHeartbeatsAreCheap(t *testing.T) {
	t.Parallel()
	cost := func(instances int) float64 {
		server := redistest.Start(t)
		store := newStore(t, server.Client())
		fill := func() {
			server.Do("EVAL", `for i = 1, ARGV[1] do
				local id = '5' .. string.format('%018d', i)
				redis.call('ZADD', KEYS[1], ARGV[2], id)
				redis.call('ZADD', KEYS[2], 0, id)
			end
			return 1`, 2, "sluice:{::instances}", "sluice:{::instances}:names", instances, time.Now().Add(4*time.Second).UnixMilli()) // no later than heartbeats make it
		}
		server.Do("CONFIG", "RESETSTAT")
		for range 10 { // 200 heartbeats may take longer than the instances live
			fill()
			for range 20 {
				require.True(t, distributed.Beat(store))
			}
		}
		require.Equal(t, instances+1, distributed.Live(store))
		for _, line := range strings.Split(fmt.Sprint(server.Do("INFO", "commandstats")), "\n") {
			if _, rest, ok := strings.Cut(line, "cmdstat_evalsha:"); ok {
				_, each, _ := strings.Cut(rest, "usec_per_call=")
				each, _, _ = strings.Cut(each, ",")
				return must[float64](t)(strconv.ParseFloat(each, 64))
			}
		}
		t.Fatal("no heartbeat was counted")
		return 0
	}
	few, many := cost(10), cost(20_000)
	t.Logf("a heartbeat takes %.1f us among 10 instances, %.1f us among 20000", few, many)
	require.Less(t, many, 10*few, "in proportion to the number it would be 2000 times")
}

// TestLimiterClose: a limit that is closed is forgotten, and its name is free.
func TestLimiterClose(t *testing.T) {
	store, server := onRedis(t, distributed.WithInstances(1), distributed.WithBlocks(100))
	a := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	for range 3 {
		acquire(t, a, "k", 1)
	}
	lease := acquire(t, a, "k", 7)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err := a.Acquire(ctx, "k", 1)
	require.ErrorIs(t, err, distributed.ErrClosed)
	require.ErrorIs(t, a.Reset(ctx, "k"), distributed.ErrClosed)
	lease.Release(algo.Canceled)
	b := must[*distributed.Limiter](t)(store.FixedWindow("a", algo.PerHour(1000)))
	remote(t, b, "other", 1)
	_, err = store.TokenBucket("a", algo.PerHour(1000))
	require.ErrorContains(t, err, "belongs to a fixed window")
	require.NotEmpty(t, server.Do("KEYS", "*"))

	busy := must[*distributed.Limiter](t)(store.InFlight("busy", 3, 30*time.Second))
	held := remote(t, busy, "k", 1)
	require.NoError(t, busy.Close())
	held.Release(algo.Succeeded)

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := max(cases.Count(20_000, 100_000), 4000)
	for i := range n {
		require.NoError(t, must[*distributed.Limiter](t)(store.TokenBucket(strconv.Itoa(i), algo.PerHour(10))).Close())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(n*200), "a limit that is closed leaves nothing")
}

// TestG1_CloseIsBounded: Close ends although nothing answers.
func TestG1_CloseIsBounded(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	server := redistest.Start(t)
	store := newStore(t, server.Client(), distributed.WithTimeout(20*time.Millisecond), distributed.WithHook(func(distributed.Event) {}))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	acquire(t, l, "k", 1)
	server.Pause()
	defer server.Resume()
	for range 100 {
		acquire(t, l, "k", 1)
	}
	began := time.Now()
	require.NoError(t, store.Close())
	took := time.Since(began)
	t.Logf("G1: closed after %v", took)
	require.Less(t, took, 15*time.Second, "1 s, the read timeout of 3 s, and a busy machine")
}
