package algo

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEndOfTheClock: a limiter that is older than its clock can count, 4.5
// years, denies what it cannot charge.
func TestEndOfTheClock(t *testing.T) {
	end := toTicks(math.MaxInt64)
	const burst = 10
	for name, charge := range map[string]func(now int64) bool{
		"bucket": endless(mustGCRA(t, PerSecond(10), burst, 0)),
		"queue":  endless(mustGCRA(t, PerSecond(10), 1, 900*time.Millisecond)),
	} {
		for _, now := range []int64{end, end - toTicks(time.Second/2), end - 1} {
			admitted := 0
			for range 1000 {
				if charge(now) {
					admitted++
				}
			}
			require.LessOrEqual(t, admitted, burst, "%s, %v before", name, toDuration(end-now))
		}
	}
}

// endless charges single units to one bucket.
func endless(g *gcra) func(now int64) bool {
	var tat int64
	return func(now int64) bool {
		var d Decision
		tat, d = g.decide(tat, now, 1)
		return d.Allowed
	}
}

// TestEndOfTheClockOfARamp is the same for SmoothWarmingUp, one at a time.
func TestEndOfTheClockOfARamp(t *testing.T) {
	r, err := newRamp(PerSecond(10), time.Second, 0, 3)
	require.NoError(t, err)
	var w warmth
	for range 1000 {
		var d Decision
		w, d = r.decide(w, toTicks(math.MaxInt64), 1)
		require.False(t, d.Allowed)
	}
}

// TestEndOfTheClockOfWindows is the same for windows, whose keys must not be
// taken for dead then.
func TestEndOfTheClockOfWindows(t *testing.T) {
	end := toTicks(math.MaxInt64)
	for name, c := range fewSlots {
		l, _ := c.make()
		for _, key := range []string{"", "k"} {
			admitted := 0
			for i := range 1000 {
				var lease Lease
				l.acquireAt(&lease, end, key, 1)
				if lease.Allowed {
					admitted++
				}
				if i%10 == 0 {
					for other := range 40 {
						l.acquireAt(new(Lease), end, string(rune('A'+other)), 1)
					}
				}
			}
			require.LessOrEqual(t, admitted, 40, "%s, key %q", name, key)
		}
	}
}
