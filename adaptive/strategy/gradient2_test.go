package strategy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive/strategy"
)

func TestGradient2DoublesAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Gradient2()
		teach(s, 20, 10*time.Millisecond) // one round trip
		require.Equal(t, 40, s.Limit())
		teach(s, 40, 10*time.Millisecond)
		require.Equal(t, 80, s.Limit())
		teach(s, 1, 100*time.Millisecond) // slower than 1.5 times the mean
		before := s.Limit()
		require.Less(t, before, 80)
		teach(s, 10, 10*time.Millisecond)
		require.InDelta(t, before+8, s.Limit(), 1, "from now on a fifth of 4 for each")
	})
}

// TestGradient2Step computes one step by hand: the mean is 10 ms, the sample 30,
// so g = clamp(1.5 * about 10/30, .5, 1) and the limit moves by a fifth.
func TestGradient2Step(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Gradient2(strategy.WithInitial(100))
		teach(s, 50, 10*time.Millisecond, 1)
		teach(s, 1, 30*time.Millisecond)
		long := 10 + 20*2.0/601
		require.Equal(t, int(100*(1-.2*(1-1.5*long/30))), s.Limit())
		teach(s, 1, time.Hour)
		require.Equal(t, int(100*(1-.2*(1-1.5*long/30))*.9), s.Limit(), "at most half, a fifth of the way")
	})
}

// TestGradient2FollowsAFasterService: a mean that is too high decays.
func TestGradient2FollowsAFasterService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Gradient2(strategy.WithInitial(100))
		teach(s, 100, time.Second, 1)
		teach(s, 100, 10*time.Millisecond, 1)
		teach(s, 30, 60*time.Millisecond)
		require.Less(t, s.Limit(), 100, "60 ms would not be slow beside 1 s")
	})
}

// A mean of 600 samples takes an incident that lasts longer for the normal state.
func TestGradient2TakesALongIncidentForNormal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.Gradient2()
		teach(s, 5000, 20*time.Millisecond)
		teach(s, 300, time.Second)
		require.Equal(t, 20, s.Limit())
		teach(s, 5000, time.Second)
		require.Equal(t, 200, s.Limit())
	})
}
