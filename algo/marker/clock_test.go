package marker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestClock: buckets of colors fill by the clock that was given.
func TestClock(t *testing.T) {
	clock := fakes.ClockAt(time.Unix(0, 0))
	m, err := marker.NewSRTCM(algo.PerHour(1), 1, 1, algo.Clock(clock.Now))
	require.NoError(t, err)
	for range 3 {
		require.True(t, fakes.Acquire(t, marker.Limit(m, marker.Green), "k", 1).Allowed)
		require.False(t, fakes.Acquire(t, marker.Limit(m, marker.Green), "k", 1).Allowed)
		clock.Advance(time.Hour)
	}
}
