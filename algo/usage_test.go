package algo_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestS3_UsageReports: a usage that is negative, above the maximum, never reported, reported
// again, or after the end is defined for every limit over time, is logged once if it is a
// mistake, and mints nothing.
func TestS3_UsageReports(t *testing.T) {
	rate := algo.PerHour(100)
	limiters := map[string]algo.Limiter{
		"shares":        algo.Must(shares.New(rate, map[string]int64{"a": 50})).Child("b"),
		"plan, credits": prepaid.First(bucket(rate), prepaid.NewCredits()),
		"all":           algo.All(bucket(rate), bucket(algo.PerDay(1000))),
	}
	for _, text := range cases.Limits("100/h", atOnce) {
		limiters[text] = made(text)
	}
	for name, l := range limiters {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				algo.ResetWarnings()
				left := func() int64 { return peek(t, l, "k").Remaining }
				all := left()
				must(t, l, "k", 30)
				lease := must(t, l, "k", 10)
				says := captureLog(t, func() {
					lease.Settle(-5)
					lease.Settle(math.MinInt64)
				})
				require.Equal(t, 1, strings.Count(says, "code=algo.negative_usage"), says)
				require.Equal(t, all-40, left(), "negative")
				for _, n := range []int64{4, 4, 7} {
					lease.Settle(n)
					require.Equal(t, all-30-n, left(), "the last report counts")
				}
				lease.Release(algo.Succeeded)
				lease.Settle(0)
				lease.Release(algo.Canceled)
				require.Equal(t, all-37, left(), "after the end")
				must(t, l, "k", 3)
				require.Equal(t, all-40, left(), "never reported: charged as reserved")
				denied := must(t, l, "k", 101)
				denied.Settle(0)
				denied.Settle(50)
				denied.Release(algo.Canceled)
				require.Equal(t, all-40, left(), "of a lease that was denied")

				above := must(t, l, "k", 8)
				above.Settle(math.MaxInt64)
				require.Zero(t, left(), "above the maximum")
				require.False(t, must(t, l, "k", 1).Allowed)
				above.Settle(0)
				above.Release(algo.Canceled)
				require.LessOrEqual(t, left(), all-40)
			})
		})
	}
}
