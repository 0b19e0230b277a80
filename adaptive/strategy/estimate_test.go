package strategy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// learners are the strategies with an estimate.
var learners = map[string]func(...adaptive.Option) adaptive.Strategy{
	"Gradient2": strategy.Gradient2, "Vegas": strategy.Vegas, "AIMD": strategy.AIMD,
}

// teach makes n samples in a row, with the whole limit in flight, or the number
// given.
func teach(s adaptive.Strategy, n int, rtt time.Duration, inFlight ...int) {
	for range n {
		time.Sleep(rtt)
		sample := adaptive.Sample{RTT: rtt, InFlight: s.Limit()}
		if len(inFlight) > 0 {
			sample.InFlight = inFlight[0]
		}
		s.Observe(sample)
	}
}

func TestLearnersDefaults(t *testing.T) {
	for name, most := range map[string]int{"Gradient2": 200, "Vegas": 1000, "AIMD": 200} {
		s := learners[name]()
		require.Equal(t, 20, s.Limit(), name)
		l := newLimiter(t, s)
		require.Equal(t, algo.Never, acquire(t, l, "", int64(most)+1).Reason, name)
		one := acquire(t, l, "", 1)
		require.Equal(t, algo.Overload, acquire(t, l, "", int64(most)).Reason, name)
		one.Release(algo.Succeeded)
		require.True(t, acquire(t, l, "", int64(most)).Allowed, "%s: alone", name)
		require.Equal(t, 50, learners[name](strategy.WithInitial(50)).Limit())
		require.Equal(t, 30, learners[name](adaptive.WithLimits(30, 40)).Limit(), "the usual start, moved")
	}
}

// TestC2_LearnersStayWithinLimits with any samples.
func TestC2_LearnersStayWithinLimits(t *testing.T) {
	for name := range learners {
		rapid.Check(t, func(t *rapid.T) {
			lowest := rapid.IntRange(1, 50).Draw(t, "min")
			most := rapid.IntRange(lowest, 300).Draw(t, "max")
			s := learners[name](adaptive.WithLimits(lowest, most))
			for range rapid.IntRange(1, 200).Draw(t, "n") {
				s.Observe(adaptive.Sample{
					RTT:      time.Duration(rapid.Int64Range(-5, 1<<62).Draw(t, "rtt")),
					End:      time.Duration(rapid.Int64Range(-1<<40, 1<<62).Draw(t, "end")),
					InFlight: rapid.IntRange(-1, 1000).Draw(t, "in flight"),
					Outcome:  algo.Outcome(rapid.IntRange(0, 1).Draw(t, "outcome")),
				})
				require.GreaterOrEqual(t, s.Limit(), lowest)
				require.LessOrEqual(t, s.Limit(), most)
			}
		})
	}
}

// TestLearnersHoldWhenUnused: with less than half in flight the limit is constant.
func TestLearnersHoldWhenUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name := range learners {
			s := learners[name](strategy.WithInitial(100))
			teach(s, 500, 10*time.Millisecond, 49)
			require.Equal(t, 100, s.Limit(), name)
			teach(s, 20, 10*time.Millisecond, 51)
			require.Greater(t, s.Limit(), 100, name)
		}
	})
}

func TestLearnersErrors(t *testing.T) {
	for name, make := range learners {
		for want, o := range map[string]adaptive.Option{
			"initial limit is 10, want 20 to 30": strategy.WithInitial(10),
			"initial limit is 0, want 20 to 30":  strategy.WithInitial(0),
			"zero Option":                        {},
			"duplicate option WithLimits":        adaptive.WithLimits(1, 2),
			"does not take the option WithQueue": adaptive.WithQueue(adaptive.FIFO(1, 1)),
		} {
			_, err := adaptive.New(make(adaptive.WithLimits(20, 30), o))
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "adaptive: New: "+name+": ")
		}
	}
	_, err := adaptive.New(strategy.AIMD(strategy.WithTimeout(0)))
	require.ErrorContains(t, err, "timeout is 0s")
}

func TestLearnersAllocations(t *testing.T) {
	for name := range learners {
		var l algo.Limiter = newLimiter(t, learners[name]())
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			lease, _ := l.Acquire(background, "", 1)
			lease.Release(algo.Succeeded)
		}), name)
	}
}
