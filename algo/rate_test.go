package algo_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func TestRateUnmarshal(t *testing.T) {
	for text, want := range map[string]algo.Rate{
		"1/s": algo.PerSecond(1), "1/sec": algo.PerSecond(1), "1/second": algo.PerSecond(1), "1/1s": algo.PerSecond(1),
		"2/m": algo.PerMinute(2), "2/min": algo.PerMinute(2), "2/minute": algo.PerMinute(2),
		"3/h": algo.PerHour(3), "3/hour": algo.PerHour(3), "4/d": algo.PerDay(4), "4/day": algo.PerDay(4),
		"5/15m": algo.Per(5, 15*time.Minute), "6/100ms": algo.Per(6, 100*time.Millisecond), "1/1µs": algo.Per(1, time.Microsecond),
	} {
		var r algo.Rate
		err := r.UnmarshalText([]byte(text))
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
	require.ErrorContains(t, r.UnmarshalText([]byte("100")), `rate: "100", want count/period`)
}

func ExampleRate_UnmarshalText() {
	for _, s := range []string{"100/s", "5/15m", "1000/day", "5/blue"} {
		var rate algo.Rate
		err := rate.UnmarshalText([]byte(s))
		fmt.Println(rate.Count, rate.Period, err)
	}
	// Output:
	// 100 1s <nil>
	// 5 15m0s <nil>
	// 1000 24h0m0s <nil>
	// 0 0s algo: rate: period is "blue", want a duration such as 500ms, or s, min, h or day
}

// A number from a configuration or from code for golang.org/x/time/rate.
func ExamplePerSecondFloat() {
	fmt.Println(algo.PerSecondFloat(0.5), algo.PerSecondFloat(2.5))
	// Output: 1/2s 3/1.2s
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

// TestRateOfZero: a rate or burst of 0 is one and the same error wherever a limit is made or
// changed, and so is one beyond the largest: never a limit that denies or admits everything, and
// a limit in use keeps its rate. The error names the limiter that does.
func TestRateOfZero(t *testing.T) {
	const (
		zero     = "rate: count is 0, want 1 or more (algo.DenyAll denies everything)"
		infinite = "is faster than 1e9 per second (algo.Unlimited admits everything)"
	)
	for _, text := range cases.Limits("5/h", cases.Without{"zone": "its rate is of a day"}) {
		name, _, _ := strings.Cut(text, " ")
		for want, rate := range map[string]algo.Rate{zero: algo.PerHour(0), infinite: algo.PerSecond(math.MaxInt64)} {
			_, err := algo.Parse(strings.Replace(text, strings.Fields(text)[1], rate.String(), 1))
			require.ErrorContains(t, err, want, name)
			var s algo.Spec
			require.ErrorContains(t, s.UnmarshalJSON([]byte(`{"algorithm":"`+name+`","rate":"`+rate.String()+`"}`)), want)

			spec, err := algo.Parse(text)
			require.NoError(t, err)
			l, err := spec.New()
			require.NoError(t, err)
			spec.Rate = rate
			require.ErrorContains(t, spec.Apply(l), want)
			_, err = spec.New()
			require.ErrorContains(t, err, want)
			_, err = spec.MarshalText()
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, l.SetRate(spec.Rate), want)
			require.True(t, must(t, l, "k", 1).Allowed, name)
		}
	}
	_, err := colors.NewSRTCM(algo.PerSecond(0), 1, 1)
	require.ErrorContains(t, err, zero)
	for _, name := range []string{"token-bucket", "leaky-bucket", "strict"} {
		for burst, want := range map[int64]string{0: "burst is 0, want 1 ", math.MaxInt64: "burst is 9223372036854775807"} {
			spec := algo.Spec{Algorithm: name, Rate: algo.PerSecond(5)}
			l := algo.Must(spec.New())
			_, err := spec.New(algo.Burst(burst))
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, l.SetBurst(burst), want)
			_, err = algo.Parse(fmt.Sprintf("%s 5/s burst %d", name, burst))
			require.ErrorContains(t, err, want)
		}
	}
}

// TestPerSecondFloat: the rate is never faster than the number and at most a nanosecond in each
// period slower; whole numbers and their inverses are exact. What is no rate is an error.
func TestPerSecondFloat(t *testing.T) {
	for f, want := range map[float64]algo.Rate{
		1: algo.PerSecond(1), 10: algo.PerSecond(10), 1e9: algo.PerSecond(1e9), 0.5: algo.Every(2 * time.Second),
		0.1: algo.Every(10 * time.Second), 1.0 / 3: algo.Every(3 * time.Second), 2.5: algo.Per(3, 1200*time.Millisecond),
		1.0 / 3600: algo.Every(time.Hour), 0.3: algo.Every(3_333_333_334), 1e8 + 0.5: algo.Per(1e8+1, 1_000_000_005),
	} {
		require.Equal(t, want, algo.PerSecondFloat(f), "%v", f)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		f := math.Exp(rnd.Float64()*37 - 17) // 4e-8 to 5e8
		r := algo.PerSecondFloat(f)
		exact := float64(r.Count) / f * 1e9
		require.InDelta(t, exact+0.5, float64(r.Period), 0.5+exact*1e-15, "%v", f)
	}
	for want, fs := range map[string][]float64{
		"rate: count is 0":           {0, -1, math.NaN(), math.Inf(-1)},
		"faster than 1e9 per second": {1e9 + 1, math.Inf(1)},
		"rate: period is ":           {1e-300, 1e-11},
	} {
		for _, f := range fs {
			_, err := algo.NewTokenBucket(algo.PerSecondFloat(f))
			require.ErrorContains(t, err, want, "%v", f)
		}
	}
}
