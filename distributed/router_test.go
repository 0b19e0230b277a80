package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 600 {
		group.Go(func() {
			lease, err := l.Acquire(ctx, fmt.Sprint("user", i%30), 1)
			if err == nil && lease.Allowed && lease.Source == algo.SourceRemote {
				admitted.Add(1)
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(300), admitted.Load())
}

func TestRing(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	c := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	admitted := 0
	for i := range 300 {
		if remote(t, l, fmt.Sprint("user", i%20), 1).Allowed {
			admitted++
		}
	}
	require.Equal(t, 200, admitted)
	require.Positive(t, a.Do("DBSIZE"))
	require.Positive(t, b.Do("DBSIZE"))
}

// G1: a lease that ends after Close starts nothing, also if the ring has moved its key to a
// shard that the store has not used.
func TestG1_RingAfterClose(t *testing.T) {
	shards := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": shards[0].Addr(), "b": shards[1].Addr()}, HeartbeatFrequency: 10 * time.Millisecond,
	})
	t.Cleanup(func() { _ = ring.Close() })
	store := newStore(t, ring, distributed.WithInstances(1))
	lease := remote(t, must[*distributed.Limiter](t)(store.InFlight("work", 5, 30*time.Second)), "k", 1)
	require.NoError(t, store.Close())
	for _, s := range shards {
		if s.Do("DBSIZE") != int64(0) {
			s.Kill()
		}
	}
	require.Eventually(t, func() bool { return ring.Len() == 1 }, 20*time.Second, time.Millisecond)
	before := goleak.IgnoreCurrent()
	lease.Release(algo.Succeeded)
	goleak.VerifyNone(t, before, // the ring goes on asking the dead shard
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).dialConn"))
}
