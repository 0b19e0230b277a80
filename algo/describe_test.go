package algo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// What is described is the rate that was asked for, not what it is rounded to:
// a header field rounds its window up to whole seconds, and would make 7 a
// second "7 in 2 seconds".
func TestDescribedWindowIsWhatWasAsked(t *testing.T) {
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
