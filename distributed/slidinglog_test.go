package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A sliding log holds at most its quota in any window.
func TestW2_SlidingLogBound(t *testing.T) {
	store, _ := onRedis(t)
	const period = 60 * time.Millisecond
	l := must[*distributed.Limiter](t)(store.SlidingLog("log", algo.Per(5, period)))
	type admission struct{ before, after time.Time }
	var all []admission
	for len(all) <= 20 {
		before := time.Now()
		if remote(t, l, "k", 1).Allowed {
			all = append(all, admission{before, time.Now()})
		}
	}
	for i := 5; i < len(all); i++ {
		require.GreaterOrEqual(t, all[i].after.Sub(all[i-5].before), period)
	}
}

// A settlement far above the quota fills the log, and takes as long as the log
// is, up and down.
func TestSlidingLogSettlesFarAboveTheQuota(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.SlidingLog("log", algo.PerHour(50)))
	other, lease := remote(t, l, "k", 20), remote(t, l, "k", 5)
	lease.Settle(1 << 60)
	require.Zero(t, remote(t, l, "k", 0).Remaining)
	other.Release(algo.Canceled)
	require.Zero(t, remote(t, l, "k", 0).Remaining, "its units have been replaced")
	lease.Settle(3)
	require.Zero(t, remote(t, l, "k", 0).Remaining, "it was not charged whole, so nothing comes back")
}
