package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
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
