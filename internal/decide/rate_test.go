package decide

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAccuracy: a limit is never faster than asked, and slower only within the
// documented error.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		rate  Rate
		error float64
	}{
		{per(1, 24*time.Hour), 0}, {per(7, time.Hour), 1e-6}, {per(100, time.Minute), 1e-6},
		{per(3, time.Second), 1e-6}, {per(99_999, time.Second), 1e-6},
		{per(10_000_000, time.Second), 0}, {per(9_999_999, time.Second), 2e-4},
		{per(600_000_000, time.Second), 0.016}, {per(999_999_999, time.Second), 0.016},
		{per(1_000_000_000, time.Second), 0},
		{Rate{9_999, time.Second, Microseconds}, 0.01}, {Rate{99_999, time.Second, Microseconds}, 0.1},
		{Rate{1_000_000, time.Second, Microseconds}, 0}, {Rate{1, 1500 * time.Nanosecond, Microseconds}, 0.34},
	} {
		require.NoError(t, c.rate.Validate())
		asked := float64(c.rate.Period/c.rate.step) * float64(c.rate.stepTicks()) / float64(c.rate.Count)
		if c.rate.Period < time.Millisecond {
			asked = float64(c.rate.Period) / float64(c.rate.step)
		}
		slow := float64(c.rate.emission())/asked - 1
		require.GreaterOrEqual(t, slow, 0.0, "%v", c.rate)
		require.LessOrEqual(t, slow, c.error, "%v", c.rate)
	}
}

func TestRateErrors(t *testing.T) {
	for want, r := range map[string]Rate{
		"rate: count is 0, want 1 or more (algo.DenyAll denies everything)":                 per(0, time.Second),
		"rate: count is -1, want 1 or more":                                                 per(-1, time.Second),
		"rate: period is -1ns, want more than 0":                                            per(1, -1),
		"rate: period is 8760h0m0.000000001s, want at most 8760h0m0s":                       per(1, MaxSpan+1),
		"rate: 2/1ns is faster than 1e9 per second (algo.Unlimited admits everything)":      per(2, 1),
		"rate: 2/1.999µs is faster than 1e6 per second: count in larger units, such as KiB": {2, 1999, Microseconds},
	} {
		require.EqualError(t, r.Validate(), want)
	}
}

// TestResolutionRounds: spans are rounded up for a caller that waits, and down
// for a bound.
func TestResolutionRounds(t *testing.T) {
	require.EqualValues(t, 64, Nanoseconds.Ticks(1))
	require.EqualValues(t, 2, Nanoseconds.Duration(65))
	require.EqualValues(t, 1, Microseconds.Ticks(1999))
	require.Equal(t, 3*time.Microsecond, Microseconds.Duration(3))
	require.Positive(t, Nanoseconds.Ticks(math.MaxInt64))
	require.Equal(t, int64(math.MaxInt64/1000), Microseconds.Ticks(math.MaxInt64))
}
