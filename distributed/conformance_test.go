package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/internal/workshop/storetest"
)

// The kit passes on miniredis too, which users may have in their own tests. Its
// Lua is not Redis' Lua, so it proves nothing about the scripts.
func TestConformanceOnMiniredis(t *testing.T) {
	server := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	made := 0
	for name, make := range map[string]maker{"token bucket": store.TokenBucket, "fixed window": store.FixedWindow} {
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

// maker is a constructor of a store.
type maker = storetest.Maker

func makers(s *distributed.Store) map[string]maker { return storetest.Makers(s) }

// Every kind passes the kit that the local limiters pass, on one server, behind
// sentinels and in a cluster.
func TestConformance(t *testing.T) {
	store, server := onRedis(t)
	storetest.Conform(t, store)
	requireTTL(t, server)
}

func TestConformanceBehindSentinels(t *testing.T) {
	cases.Slow(t)
	s := redistest.StartSentinels(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs})
	t.Cleanup(func() { _ = c.Close() })
	storetest.Conform(t, newStore(t, c, distributed.WithTimeout(time.Second)))
	requireTTL(t, s.Master)
}

func TestConformanceInACluster(t *testing.T) {
	cases.Slow(t)
	cluster := redistest.StartCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	storetest.Conform(t, newStore(t, c, distributed.WithTimeout(time.Second)))
}
