package distributed_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
)

// TestS3_UsageReportsOnRedis: wrong usage reports have the same defined results as for
// local limits, and create no units.
func TestS3_UsageReportsOnRedis(t *testing.T) {
	store, _ := onRedis(t)
	rate := algo.Per(100, 1000*time.Hour)
	limits := map[string]algo.Limiter{}
	for name, make := range map[string]func(string, algo.Rate, ...algo.Option) (*distributed.Limiter, error){
		"token bucket": store.TokenBucket, "fixed window": store.FixedWindow, "sliding window": store.SlidingWindow, "sliding log": store.SlidingLog,
	} {
		limits[name] = must[*distributed.Limiter](t)(make(name, rate))
	}
	limits["shares"] = must[*distributed.Shares](t)(store.Shares("shares", rate, map[string]int64{"a": 50})).Child("b")
	plan := must[*distributed.Limiter](t)(store.TokenBucket("plan", rate))
	limits["plan, credits"] = prepaid.First(plan, must[*distributed.Credits](t)(store.Credits("credits")))
	for name, l := range limits {
		t.Run(name, func(t *testing.T) {
			left := func() int64 { return remote(t, l, "k", 0).Remaining }
			all := left()
			leaves := func(want int64, why string) {
				t.Helper()
				require.Eventually(t, func() bool { return left() == want }, patient, time.Millisecond, "%s: %d are left, want %d", why, left(), want)
			}
			remote(t, l, "k", 30)
			lease := remote(t, l, "k", 10)
			lease.Settle(-5)
			lease.Settle(math.MinInt64)
			leaves(all-40, "negative")
			for _, n := range []int64{4, 4, 7} {
				lease.Settle(n)
				leaves(all-30-n, "the last report counts")
			}
			lease.Release(algo.Succeeded)
			lease.Settle(0)
			lease.Release(algo.Canceled)
			remote(t, l, "k", 3)
			leaves(all-40, "after the end, and never reported")
			denied := remote(t, l, "k", 101)
			require.False(t, denied.Allowed)
			denied.Settle(0)
			denied.Settle(50)
			denied.Release(algo.Canceled)
			leaves(all-40, "of a lease that was denied")

			above := remote(t, l, "k", 8)
			above.Settle(math.MaxInt64)
			leaves(0, "above the maximum")
			require.False(t, remote(t, l, "k", 1).Allowed)
			above.Settle(0)
			above.Release(algo.Canceled)
			time.Sleep(20 * time.Millisecond) // these corrections are on their way
			require.LessOrEqual(t, left(), all-40)
		})
	}
}
