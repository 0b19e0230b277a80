package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A lease takes one member of its set, whatever its weight: 2000 units of 10000 cost Redis
// what one does, on their way back too.
func TestWeightsCostNothing(t *testing.T) {
	store, server := onRedis(t)
	slots := must[*distributed.Limiter](t)(store.InFlight("weighed", 10_000, 30*time.Second))
	log := must[*distributed.Limiter](t)(store.SlidingLog("weighed log", algo.Per(10_000, time.Hour)))
	for name, l := range map[string]*distributed.Limiter{"weighed": slots, "weighed log": log} {
		var leases []algo.Lease
		for range 5 {
			leases = append(leases, remote(t, l, "k", 2000))
		}
		require.False(t, remote(t, l, "k", 1).Allowed)
		key := distributed.RedisKey("sluice", name, "k")
		members := func() int64 { return server.Do("ZCARD", key).(int64) }
		require.LessOrEqual(t, members(), int64(6), name)
		leases[0].Settle(500)
		require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == 1500 }, 5*time.Second, time.Millisecond)
		leases[0].Settle(1500)
		require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == 500 }, 5*time.Second, time.Millisecond)
		leases[0].Settle(700)
		require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == 1300 }, 5*time.Second, time.Millisecond)
		for _, lease := range leases {
			lease.Release(algo.Canceled)
		}
		require.Eventually(t, func() bool { return server.Do("EXISTS", key) == int64(0) }, 5*time.Second, time.Millisecond, name)
	}
}
