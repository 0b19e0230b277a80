package algo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// The description has the exact rate, not the rounded one: a header field rounds
// its window up to whole seconds, and would make 7 a second "7 in 2 seconds".
func TestDescribedWindowIsExact(t *testing.T) {
	for n := int64(1); n <= 1000; n++ {
		for period, rate := range map[time.Duration]algo.Rate{
			time.Second: algo.PerSecond(n), time.Minute: algo.PerMinute(n), 24 * time.Hour: algo.PerDay(n),
		} {
			d := algo.About(algo.Must(algo.NewTokenBucket(rate)))
			require.Equal(t, algo.Description{Rate: rate, Quota: n, Window: period}, d)
			d = algo.About(algo.Must(algo.NewLeakyBucket(rate, algo.Burst(3*n))))
			require.Equal(t, algo.Description{Rate: rate, Quota: 3 * n, Window: 3 * period}, d)
			d = algo.About(algo.Must(algo.NewPacer(rate, algo.Slack(n-1))))
			require.Equal(t, algo.Description{Rate: rate, Quota: n, Window: period}, d)
		}
	}
	d := algo.About(algo.Must(algo.NewTokenBucket(algo.PerSecond(3), algo.Burst(1))))
	require.Equal(t, time.Second/3+1, d.Window, "rounded up to whole nanoseconds")
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(3)))
	require.NoError(t, l.SetRate(algo.PerSecond(7)))
	d = l.About()
	require.Equal(t, algo.Description{Rate: algo.PerSecond(7), Quota: 7, Window: time.Second}, d)
}

func TestDescriptionString(t *testing.T) {
	for want, d := range map[string]algo.Description{
		"100-per-minute":         {Quota: 100, Window: time.Minute},
		"10-per-second":          {Rate: algo.PerSecond(10), Quota: 10, Window: time.Second},
		"10-per-second-burst-20": {Rate: algo.PerSecond(10), Quota: 20, Window: 2 * time.Second},
		"1-per-hour-burst-3":     {Rate: algo.PerHour(1), Quota: 3, Window: 3 * time.Hour},
		"5-per-day":              {Rate: algo.PerDay(5), Quota: 5},
		"5-per-week":             {Rate: algo.Per(5, algo.Week), Quota: 5},
		"5-per-month":            {Rate: algo.Per(5, algo.Month), Quota: 5},
		"5-per-quarter":          {Rate: algo.Per(5, algo.Quarter), Quota: 5},
		"5-per-15m":              {Rate: algo.Per(5, 15*time.Minute), Quota: 5},
		"5-per-1h30m":            {Rate: algo.Per(5, 90*time.Minute), Quota: 5},
		"5-per-2h":               {Rate: algo.Per(5, 2*time.Hour), Quota: 5},
		"5-per-1m10s":            {Rate: algo.Per(5, 70*time.Second), Quota: 5},
		"5-per-10s":              {Rate: algo.Per(5, 10*time.Second), Quota: 5},
		"5-per-1.5us":            {Rate: algo.Per(5, 1500), Quota: 5},
		"1-per-1ns":              {Quota: 1, Window: 1},
		"5-requests":             {Quota: 5},
		"64-concurrent-requests": {Quota: 64, Unit: algo.ConcurrentRequests},
		"7-concurrent-requests":  {Quota: 7, Unit: algo.ConcurrentRequests, Window: time.Second},
		"default":                {Quota: -1, Window: -1},
	} {
		require.Equal(t, want, d.String())
	}
}

func TestAbout(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	d := algo.About(l)
	require.Equal(t, algo.Description{Rate: algo.PerSecond(10), Quota: 20, Window: 2 * time.Second}, d)
	require.Zero(t, algo.About(nil).Quota)
	require.Equal(t, "concurrent-requests", algo.ConcurrentRequests.String())
}

func ExampleAbout() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	d := algo.About(l)
	fmt.Println(d.Quota, d.Unit, "in", d.Window)
	fmt.Println(d)
	// Output:
	// 20 requests in 2s
	// 10-per-second-burst-20
}
