package distributed_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// clusterClient is a client with go-redis' defaults.
func clusterClient(t testing.TB, cluster *redistest.Cluster) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// keysOf returns n keys that the node serves.
func keysOf(t testing.TB, c *redis.ClusterClient, node *redistest.Server, limit string, n int) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprint("user", i)
		master := must[*redis.Client](t)(c.MasterForKey(ctx, distributed.RedisKey("sluice", limit, key)))
		if master.Options().Addr == node.Addr() {
			keys = append(keys, key)
		}
	}
	return keys
}

// known waits until the store has a queue for each node.
func known(t testing.TB, store *distributed.Store, l algo.Limiter) {
	require.Eventually(t, func() bool { acquire(t, l, "warm up", 0); return store.Stats().Nodes == 3 },
		10*time.Second, time.Millisecond)
}

// TestF3_DeadNodeLeavesTheOthers: a node that is down, or hangs, makes the
// decisions about its own keys local and no others.
func TestF3_DeadNodeLeavesTheOthers(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*redistest.Server){"killed": (*redistest.Server).Kill, "hangs": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartMixedCluster(t)
			c := clusterClient(t, cluster)
			var opened atomic.Int64
			store := newStore(t, c, distributed.WithTimeout(200*time.Millisecond), distributed.WithInstances(1),
				distributed.WithHook(func(e distributed.Event) {
					if e.Phase == distributed.PhaseOpen && e.Kind == distributed.BreakerChanged && e.Node != cluster.Nodes[0].Addr() {
						opened.Add(1)
					}
				}))
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(100_000)))
			known(t, store, l)
			dead := keysOf(t, c, cluster.Nodes[0], "a", 20)
			healthy := append(keysOf(t, c, cluster.Nodes[1], "a", 20), keysOf(t, c, cluster.Nodes[2], "a", 20)...)
			fail(cluster.Nodes[0])
			defer cluster.Nodes[0].Resume()
			began, local, total := time.Now(), 0, 0
			for time.Since(began) < 2*time.Second {
				for i, key := range healthy {
					total++
					if acquire(t, l, key, 1).Source != algo.SourceRemote {
						local++
					}
					go func() { _, _ = l.Acquire(ctx, dead[i%len(dead)], 1) }()
				}
			}
			t.Logf("F3: %d of %d decisions of healthy nodes were local", local, total)
			require.Less(t, float64(local), 0.02*float64(total))
			require.Zero(t, opened.Load())
			require.Equal(t, distributed.PhaseOpen, store.Stats().Phase)
			require.Equal(t, 1, store.Stats().Away)
		})
	}
}

// TestF4_SlotThatIsMoved: while a slot is moved, its keys may be undecidable for a
// moment (TRYAGAIN); others are not affected.
func TestF4_SlotThatIsMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := clusterClient(t, cluster)
	var e events
	store := newStore(t, c, distributed.WithInstances(1), distributed.WithHook(e.hook))
	first := must[*distributed.Limiter](t)(store.TokenBucket("first", algo.PerHour(1000)))
	second := must[*distributed.Limiter](t)(store.TokenBucket("second", algo.PerHour(1000)))
	known(t, store, first)
	keys := keysOf(t, c, cluster.Nodes[0], "first", 10)
	remote(t, first, keys[0], 1) // the other key does not exist: it may have been moved
	slot := cluster.Nodes[0].Do("CLUSTER", "KEYSLOT", distributed.RedisKey("sluice", "first", keys[0]))
	cluster.Nodes[1].Do("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.Nodes[0].Do("CLUSTER", "MYID"))
	cluster.Nodes[0].Do("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.Nodes[1].Do("CLUSTER", "MYID"))
	for range 30 {
		leases := must[[]algo.Lease](t)(acquireBoth(first, second, keys[0]))
		require.Equal(t, algo.SourceFallback, leases[0].Source)
		for _, key := range keys[1:] {
			remote(t, first, key, 1)
		}
	}
	require.Empty(t, e.states())
	require.Equal(t, 1, e.count(distributed.KeyFault), "once in ten seconds")
	e.mu.Lock()
	defer e.mu.Unlock()
	require.ErrorContains(t, e.all[len(e.all)-1].Err, "TRYAGAIN")
}

func acquireBoth(a, b algo.Limiter, key string) ([]algo.Lease, error) {
	leases := make([]algo.Lease, 2)
	err := a.(algo.Batcher).AcquireBatch(ctx, []algo.Request{{Limiter: a, Key: key, N: 1}, {Limiter: b, Key: key, N: 1}}, leases)
	return leases, err
}

// TestWrappedClusterClient: a client that hides its type is found to be a cluster.
func TestWrappedClusterClient(t *testing.T) {
	t.Parallel()
	type wrapper struct{ redis.UniversalClient }
	cluster := redistest.StartCluster(t)
	c := clusterClient(t, cluster)
	var e events
	log := new(textLog)
	store := newStore(t, wrapper{c}, distributed.WithInstances(1), distributed.WithHook(e.hook), log.logger())
	users := must[*distributed.Limiter](t)(store.TokenBucket("users", algo.PerHour(1000)))
	total := must[*distributed.Limiter](t)(store.TokenBucket("total", algo.PerHour(1_000_000)))
	user := keysOf(t, c, cluster.Nodes[0], "users", 1)[0]
	all := keysOf(t, c, cluster.Nodes[1], "total", 1)[0]
	both := func() algo.Source {
		lease, err := algo.AcquireAll(context.Background(), algo.Request{Limiter: users, Key: user, N: 1}, algo.Request{Limiter: total, Key: all, N: 1})
		require.NoError(t, err)
		return lease.Source
	}
	require.Eventually(t, func() bool { return both() == algo.SourceRemote }, 10*time.Second, time.Millisecond)
	for range 100 {
		require.Equal(t, algo.SourceRemote, both())
	}
	known(t, store, users)
	require.Zero(t, e.count(distributed.KeyFault))
	require.Empty(t, log.String())
}
