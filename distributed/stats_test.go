package distributed_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A new store has sent nothing and counted no instances.
func TestStatsOfAnIdleStore(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(), distributed.WithDenyCache(7), distributed.WithFallback(distributed.FallbackDeny))
	require.Equal(t, distributed.Stats{
		Percent: 100, Nodes: 1, Timeout: patient, Instances: 16, Fallback: distributed.FallbackDeny, DeniedMax: 7,
	}, store.Stats())

	fixed := newStore(t, server.Client(), distributed.WithInstances(3))
	require.Equal(t, 3, fixed.Stats().Instances)
	require.True(t, fixed.Stats().Counted)
}

// Denials in the cache and blocks are counted.
func TestStatsCountDenialsAndBlocks(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100), distributed.WithBlocks(1000), distributed.WithInstances(1))
	busy := must[*distributed.Limiter](t)(store.TokenBucket("busy", algo.PerHour(100_000)))
	small := must[*distributed.Limiter](t)(store.TokenBucket("small", algo.PerDay(1)))
	acquire(t, busy, "a", 1)
	require.Equal(t, 1, store.Stats().Blocks)
	for range 2 {
		acquire(t, small, "b", 1)
		acquire(t, small, "c", 1)
	}
	require.Equal(t, 2, store.Stats().Denied)
}

// The worst node's state is reported, from its failure until its recovery.
func TestStatsInAnOutage(t *testing.T) {
	server := redistest.Start(t)
	store := newStore(t, server.Client(), distributed.WithTimeout(20*time.Millisecond), distributed.ProbeEvery(10*time.Millisecond))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1000)))
	acquire(t, l, "k", 1)

	server.Kill()
	require.Eventually(t, func() bool {
		acquire(t, l, "k", 1)
		st := store.Stats()
		return st.Phase == distributed.PhaseOpen && st.Percent == 0 && st.Probing && st.Away == 1
	}, 30*time.Second, time.Millisecond)

	server.Restart()
	require.Eventually(t, func() bool {
		st := store.Stats()
		return st.Phase == distributed.PhaseClosed && st.Percent == 100 && !st.Probing && st.Away == 0
	}, 30*time.Second, time.Millisecond)
}

// A cluster has a queue for each node, a ring for each shard that was asked.
func TestStatsCountNodes(t *testing.T) {
	t.Parallel()
	inCluster := newStore(t, clusterClient(t, redistest.StartCluster(t)))
	require.Equal(t, 1, inCluster.Stats().Nodes, "none is known yet")
	known(t, inCluster, must[*distributed.Limiter](t)(inCluster.TokenBucket("a", algo.PerSecond(1000))))

	a, b := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	store := newStore(t, ring, distributed.WithInstances(1))
	require.Zero(t, store.Stats().Nodes)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1000)))
	for i := range 50 {
		acquire(t, l, strconv.Itoa(i), 1)
	}
	require.Equal(t, 2, store.Stats().Nodes)
}

// A store says how it decides without Redis.
func TestStatsSayWhatDecidesWithoutRedis(t *testing.T) {
	for decides, s := range map[string]distributed.Stats{
		"each limit with a share of 1/16 in this instance (16 instances are assumed, none is counted yet)": {Instances: 16},
		"each limit with a share of 1/3 in this instance":                                                  {Instances: 3, Counted: true},
		"nothing: every request is admitted":                                                               {Fallback: distributed.FallbackAllow},
		"nothing: every request is denied":                                                                 {Fallback: distributed.FallbackDeny},
	} {
		require.Equal(t, decides, s.WithoutRedis())
	}
}
