package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestLatencyIsExcused: a queue in front of the processor makes responses slow, and
// does not start the in-flight limit.
func TestLatencyIsExcused(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	work := func(rtt time.Duration, n int) (denials int) {
		for range n {
			lease := acquire(t, l, "", 1)
			if !lease.Allowed {
				denials++
			}
			m.at += rtt
			m.used += rtt / 2
			lease.Release(algo.Succeeded)
		}
		return denials
	}
	require.Zero(t, work(5*time.Millisecond, 2000))
	m.runnable = 6
	require.Zero(t, work(50*time.Millisecond, 200))
	require.False(t, l.Explain().Strategies[1].Overloaded)
	m.runnable = 0
	work(5*time.Millisecond, 2000)
	work(50*time.Millisecond, 30)
	require.True(t, l.Explain().Strategies[1].Overloaded)
}
