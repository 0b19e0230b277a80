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

func TestAIMD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strategy.AIMD(strategy.WithInitial(100), strategy.WithTimeout(time.Second))
		teach(s, 10, 10*time.Millisecond)
		require.Equal(t, 110, s.Limit())
		fail := func(rtt time.Duration, o algo.Outcome) {
			s.Observe(adaptive.Sample{RTT: rtt, InFlight: 100, Outcome: o})
		}
		for range 100 { // all admitted under the same limit, failing together
			fail(50*time.Millisecond, algo.Failed)
		}
		require.Equal(t, 99, s.Limit(), "one decrease")
		time.Sleep(2 * time.Second)
		fail(1001*time.Millisecond, algo.Succeeded)
		require.Equal(t, 89, s.Limit(), "too slow is as bad")
		time.Sleep(time.Second)
		fail(time.Second, algo.Succeeded)
		require.Equal(t, 90, s.Limit())
	})
}
