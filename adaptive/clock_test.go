package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestClock: response times are those of the clock that was given, and a strategy that reads
// the clock itself reads it too.
func TestClock(t *testing.T) {
	clock := fakes.ClockAt(time.Unix(0, 0))
	l := newLimiter(t, adaptive.Fixed(1), adaptive.WithClock(clock.Now))
	for range 32 { // one in 16 is timed
		lease := acquire(t, l, "k", 1)
		clock.Advance(time.Minute)
		lease.Release(algo.Succeeded)
	}
	acquire(t, l, "k", 1)
	require.InDelta(t, time.Minute, acquire(t, l, "k", 1).RetryAfter, float64(time.Second))

	seen := &samples{}
	l = newLimiter(t, seen, adaptive.WithClock(clock.Now))
	lease := acquire(t, l, "k", 1)
	clock.Advance(3 * time.Hour)
	lease.Release(algo.Succeeded)
	clock.Advance(-time.Hour)
	lease = acquire(t, l, "k", 1)
	clock.Advance(2 * time.Hour)
	lease.Release(algo.Succeeded)
	require.Equal(t, []time.Duration{3 * time.Hour, time.Hour}, seen.rtt)
	require.Equal(t, time.Hour, seen.end[1]-seen.end[0], "a reading before the latest one counts as the latest")

	for _, s := range []adaptive.Strategy{adaptive.Default(), adaptive.RunQueue(), strategy.CompatKratos(), strategy.BBR(), strategy.Vegas()} {
		l := newLimiter(t, s, adaptive.WithClock(clock.Now))
		for range 100 {
			lease := acquire(t, l, "k", 1)
			require.True(t, lease.Allowed)
			acquire(t, l, "k", 0)
			clock.Advance(10 * time.Millisecond)
			lease.Release(algo.Succeeded)
			l.Explain()
		}
	}
	require.PanicsWithValue(t, "adaptive: WithClock needs a function", func() { adaptive.WithClock(nil) })
	_, err := adaptive.PerKey(1, adaptive.WithClock(clock.Now))
	require.ErrorContains(t, err, "does not take the option WithClock")
}

// samples is a strategy without a limit that keeps its samples.
type samples struct{ rtt, end []time.Duration }

func (*samples) Limit() int { return 10 }
func (s *samples) Observe(one adaptive.Sample) {
	s.rtt, s.end = append(s.rtt, one.RTT), append(s.end, one.End)
}
