package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestRunQueueClosedLimit: under a standing overload 6 goroutines may be ready to run, 12
// where requests share connections and each goroutine does a third of the work.
func TestRunQueueClosedLimit(t *testing.T) {
	for _, multiplexed := range []bool{false, true} {
		m := newModel()
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		most := 6
		if multiplexed {
			l.Multiplexed()
			most = 12
		}
		m.serve(t, l, time.Millisecond, 3, 20*time.Second)
		m.goroutines = 5000
		admits := func(runnable int) bool {
			m.runnable = runnable
			lease := acquire(t, l, "", 1)
			lease.Release(algo.Ignored)
			return lease.Allowed
		}
		require.True(t, admits(most))
		require.False(t, admits(most+1))
	}
}
