package strategy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

func TestVegasFindsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Vegas(adaptive.WithLimits(1, 1000))
		// Ten at a time are served in 10 ms; more have to queue.
		sum := 0
		for i := range 10_000 {
			n := s.Limit()
			s.Observe(adaptive.Sample{RTT: time.Duration(max(n, 10)) * time.Millisecond, InFlight: n})
			if i >= 5000 {
				sum += n
			}
		}
		require.InDelta(t, 16, sum/5000, 4)
	})
}

// TestVegasAcceptsASlowerService: a probe replaces the old minimum.
func TestVegasAcceptsASlowerService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Vegas(adaptive.WithLimits(1, 50))
		teach(s, 1000, 10*time.Millisecond)
		highest := 0
		for i := range 6000 {
			teach(s, 1, 100*time.Millisecond)
			if i >= 4000 { // long enough for a probe, and now and then it probes
				highest = max(highest, s.Limit())
			}
		}
		require.Equal(t, 50, highest)
	})
}

func TestVegasFailures(t *testing.T) {
	s := strategy.Vegas(strategy.WithInitial(100))
	s.Observe(adaptive.Sample{RTT: time.Second, InFlight: 1, Outcome: algo.Failed})
	require.Equal(t, 98, s.Limit())
}
