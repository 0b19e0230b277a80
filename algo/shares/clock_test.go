package shares_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/shares"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestClock: shares fill by the clock that was given.
func TestClock(t *testing.T) {
	clock := fakes.ClockAt(time.Unix(0, 0))
	s, err := shares.New(algo.PerHour(2), map[string]int64{"a": 1}, algo.Clock(clock.Now))
	require.NoError(t, err)
	for range 3 {
		for fakes.Acquire(t, s.Child("a"), "k", 1).Allowed {
		}
		clock.Advance(time.Hour)
		require.True(t, fakes.Acquire(t, s.Child("a"), "k", 1).Allowed)
	}
}
