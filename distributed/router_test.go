package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
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
