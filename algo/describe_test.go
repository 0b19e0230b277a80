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
			d, ok := algo.Describe(algo.Must(algo.NewTokenBucket(rate)))
			require.True(t, ok)
			require.Equal(t, algo.Description{Quota: n, Window: period}, d)
			d, _ = algo.Describe(algo.Must(algo.NewLeakyBucket(rate, algo.Burst(3*n))))
			require.Equal(t, algo.Description{Quota: 3 * n, Window: 3 * period}, d)
			d, _ = algo.Describe(algo.Must(algo.NewPacer(rate, algo.Slack(n-1))))
			require.Equal(t, algo.Description{Quota: n, Window: period}, d)
		}
	}
	d, _ := algo.Describe(algo.Must(algo.NewTokenBucket(algo.PerSecond(3), algo.Burst(1))))
	require.Equal(t, time.Second/3+1, d.Window, "rounded up to whole nanoseconds")
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(3)))
	require.NoError(t, l.SetRate(algo.PerSecond(7)))
	d, _ = l.Describe()
	require.Equal(t, algo.Description{Quota: 7, Window: time.Second}, d)
}

func TestDescriptionString(t *testing.T) {
	for want, d := range map[string]algo.Description{
		"100-per-60s":            {Quota: 100, Window: time.Minute},
		"1-per-1s":               {Quota: 1, Window: 1},
		"3-per-2s":               {Quota: 3, Window: time.Second + 1},
		"5-requests":             {Quota: 5},
		"64-concurrent-requests": {Quota: 64, Unit: algo.ConcurrentRequests},
		"7-concurrent-requests":  {Quota: 7, Unit: algo.ConcurrentRequests, Window: time.Second},
		"0-requests":             {Quota: -1, Window: -1},
	} {
		require.Equal(t, want, d.String())
	}
}

func TestDescribe(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	d, ok := algo.Describe(l)
	require.True(t, ok)
	require.Equal(t, algo.Description{Quota: 20, Window: 2 * time.Second, Unit: algo.Requests}, d)
	_, ok = algo.Describe(nil)
	require.False(t, ok)
	require.Equal(t, "concurrent-requests", algo.ConcurrentRequests.String())
}

func ExampleDescribe() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	d, _ := algo.Describe(l)
	fmt.Println(d.Quota, d.Unit, "in", d.Window)
	fmt.Println(d)
	// Output:
	// 20 requests in 2s
	// 20-per-2s
}
