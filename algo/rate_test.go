package algo_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]algo.Rate{
		"1/s": algo.PerSecond(1), "1/sec": algo.PerSecond(1), "1/second": algo.PerSecond(1), "1/1s": algo.PerSecond(1),
		"2/m": algo.PerMinute(2), "2/min": algo.PerMinute(2), "2/minute": algo.PerMinute(2),
		"3/h": algo.PerHour(3), "3/hour": algo.PerHour(3), "4/d": algo.PerDay(4), "4/day": algo.PerDay(4),
		"5/15m": algo.Per(5, 15*time.Minute), "6/100ms": algo.Per(6, 100*time.Millisecond), "1/1µs": algo.Per(1, time.Microsecond),
	} {
		r, err := algo.ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, want, r)
		var back algo.Rate
		out, err := r.MarshalText()
		require.NoError(t, err)
		require.NoError(t, back.UnmarshalText(out), "%s", out)
		require.Equal(t, r, back)
	}
	_, err := algo.Rate{}.MarshalText()
	require.ErrorContains(t, err, "rate: count is 0")
	r := algo.PerHour(1)
	require.Error(t, r.UnmarshalText([]byte("x")))
	require.Equal(t, algo.PerHour(1), r, "as it was")
	_, err = algo.ParseRate("100")
	require.ErrorContains(t, err, `rate: "100", want count/period`)
}

func ExampleParseRate() {
	for _, s := range []string{"100/s", "5/15m", "1000/day", "5/blue"} {
		rate, err := algo.ParseRate(s)
		fmt.Println(rate.Count, rate.Period, err)
	}
	// Output:
	// 100 1s <nil>
	// 5 15m0s <nil>
	// 1000 24h0m0s <nil>
	// 0 0s algo: rate: period is "blue", want a duration such as 500ms, or s, min, h or day
}

func ExampleEvery() {
	l := algo.Must(algo.NewTokenBucket(algo.Every(15 * time.Minute)))
	fmt.Println(l.Allow("password reset", 1), l.Allow("password reset", 1))
	// Output: true false
}

func TestRateString(t *testing.T) {
	for want, r := range map[string]algo.Rate{
		"5/s": algo.PerSecond(5), "5/min": algo.PerMinute(5), "5/h": algo.PerHour(5),
		"5/day": algo.PerDay(5), "5/15m0s": algo.Per(5, 15*time.Minute), "1/250ms": algo.Every(250 * time.Millisecond),
	} {
		require.Equal(t, want, r.String())
	}
}
