package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A banned key is denied every cost, 0 too, by every kind and every way to ask, as by NewBan: so
// no lease without a charge can be settled.
func TestBannedKeysAreDeniedEveryCost(t *testing.T) {
	store, _ := onRedis(t, distributed.WithInstances(1), distributed.WithDenyCache(100))
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(make("banned "+name, algo.PerHour(20)))
			other := must[*distributed.Limiter](t)(make("not banned "+name, algo.PerHour(20)))
			require.NoError(t, l.Ban(ctx, "k", time.Hour))
			for range 2 { // the second answer is from the deny cache, where that has one
				for _, n := range []int64{0, 1} {
					lease := acquire(t, l, "k", n)
					lease.Settle(11)
					lease.Settle(5)
					lease.Release(algo.Canceled)
					require.Equal(t, algo.Banned, lease.Reason, "cost %d", n)
					require.False(t, lease.Allowed)
					require.Greater(t, lease.RetryAfter, 50*time.Minute)
				}
			}
			for _, n := range []int64{0, 1} {
				all := acquireAll(t, algo.Request{Limiter: other, Key: "k", N: 7}, algo.Request{Limiter: l, Key: "k", N: n})
				require.Equal(t, algo.Banned, all.Reason)
				all.Settle(11)
				all.Release(algo.Canceled)
			}
			if l.Batches(algo.Request{Limiter: l, Key: "k"}, algo.Request{Limiter: other, Key: "k"}) {
				require.EqualValues(t, 20, remote(t, other, "k", 0).Remaining, "all or nothing")
			}
			require.NoError(t, l.Reset(ctx, "k"))
			require.EqualValues(t, 20, remote(t, l, "k", 0).Remaining)
		})
	}
}

// Leases of cost 0 are settled upwards and back, by every kind: what was not charged is not given back.
func TestLeasesWithoutAChargeAreSettled(t *testing.T) {
	store, _ := onRedis(t, distributed.WithInstances(1))
	for name, make := range makers(store) {
		for i, end := range []func(*algo.Lease){
			func(l *algo.Lease) { l.Settle(11); l.Settle(5) },
			func(l *algo.Lease) { l.Settle(5); l.Settle(0); l.Settle(5) },
		} {
			l := must[*distributed.Limiter](t)(make(fmt.Sprint("free ", name, i), algo.PerDay(20)))
			lease := remote(t, l, "k", 0)
			end(&lease)
			require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining <= 15 }, patient, time.Millisecond, name)
			lease.Release(algo.Canceled)
			remote(t, l, "other", 0)
			require.LessOrEqual(t, remote(t, l, "k", 0).Remaining, int64(20), name)
		}
	}
}
