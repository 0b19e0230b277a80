package guard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// tenOfEach makes limiters that admit ten units of the key "k" at once.
func tenOfEach(t testing.TB) map[string]algo.Limiter {
	five, ten := algo.PerHour(5), algo.PerHour(10)
	credits := func(n int64) *prepaid.Credits {
		c := prepaid.NewCredits()
		require.NoError(t, c.TopUp("k", n))
		return c
	}
	ls := map[string]algo.Limiter{
		"credits":                 credits(10),
		"credits, then credits":   prepaid.First(credits(5), credits(5)),
		"a bucket, then credits":  prepaid.First(bucket(five), credits(5)),
		"a window, then credits":  prepaid.First(algo.Must(algo.NewFixedWindow(five)), credits(5)),
		"a plan beside a bucket":  algo.All(prepaid.First(bucket(five), credits(5)), bucket(ten)),
		"SRTCM":                   colors.Limit(algo.Must(colors.NewSRTCM(ten, 5, 5)), colors.Yellow),
		"SRTCM without committed": colors.Limit(algo.Must(colors.NewSRTCM(ten, 0, 10)), colors.Yellow),
		"TRTCM":                   colors.Limit(algo.Must(colors.NewTRTCM(five, 5, ten, 10)), colors.Yellow),
		"RFC 4115":                colors.Limit(algo.Must(colors.NewRFC4115(ten, 5, five, 5)), colors.Yellow),
		"RFC 4115 without excess": colors.Limit(algo.Must(colors.NewRFC4115(ten, 10, five, 0)), colors.Yellow),
		"a ban":                   algo.Must(guard.NewBan(bucket(ten), algo.PerMinute(1000), time.Second, time.Minute)),
		"a bucket that may wait":  bucket(ten, algo.MaxWait(time.Minute)),
		"the child of a limit":    algo.Must(shares.New(ten, map[string]int64{"a": 5})).Child("a"),
	}
	for _, text := range cases.Limits("10/h", cases.Without{
		cases.Ahead: "the eleventh unit is admitted before the tenth is paid", cases.Delays: "ten units more may wait",
	}) {
		ls[text] = algo.Must(algo.Must(algo.Parse(text)).New())
	}
	return ls
}

// Of any limit the next failure after the last that fits is denied.
func TestW2_FailuresOnlyOverEveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, inner := range tenOfEach(t) {
			l := guard.FailuresOnly(inner)
			failures := 0
			for ; failures < 50; failures++ {
				lease := must(t, l, "k", 1)
				if !lease.Allowed {
					break
				}
				lease.Release(algo.Failed)
			}
			require.InDelta(t, 10, failures, 1, name)
			require.LessOrEqual(t, peek(t, inner, "k").Remaining, int64(0), name)
		}
	})
}

// Failures that are in flight at once are charged beyond the limit, and are no denials.
func TestFailuresOnlyOverABanCountsNoFailure(t *testing.T) {
	ban := algo.Must(guard.NewBan(bucket(algo.PerHour(2)), algo.PerMinute(1), time.Hour, time.Hour))
	l := guard.FailuresOnly(ban)
	var leases [5]algo.Lease
	for i := range leases {
		leases[i] = must(t, l, "k", 1)
		require.True(t, leases[i].Allowed)
	}
	for i := range leases {
		leases[i].Release(algo.Failed)
	}
	require.Zero(t, ban.Banned("k"))
	d := must(t, ban, "k", 0).Decision
	require.Greater(t, d.NextAfter, 89*time.Minute, "three beyond the burst weigh")
}
