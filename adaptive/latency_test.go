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
	others := fill(t, l, 20)
	defer releaseAll(others, algo.Succeeded|algo.Untimed)
	require.Zero(t, work(5*time.Millisecond, 2000))
	m.runnable = 6
	require.Zero(t, work(50*time.Millisecond, 200))
	require.False(t, l.Explain().Strategies[1].Overloaded)
	m.runnable = 0
	work(5*time.Millisecond, 2000)
	work(50*time.Millisecond, 30)
	require.True(t, l.Explain().Strategies[1].Overloaded)
}

// TestDefaultLearnsNothingFromAFew: slow or hung requests are no overload while
// fewer than 20 are in flight.
func TestDefaultLearnsNothingFromAFew(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	work := func(rtt time.Duration, n int) {
		for range n {
			lease := acquire(t, l, "", 1)
			require.True(t, lease.Allowed)
			m.at += rtt
			lease.Release(algo.Succeeded)
		}
	}
	work(5*time.Millisecond, 2000)
	hung := fill(t, l, 10)
	require.Len(t, hung, 10)
	for range 10 {
		m.at += 5 * time.Second
		work(5*time.Millisecond, 1)
	}
	for range 8 {
		m.at += 300 * time.Millisecond
		hung = append(hung, acquire(t, l, "", 1))
		require.True(t, hung[len(hung)-1].Allowed)
	}
	m.at += time.Minute
	work(5*time.Millisecond, 1)
	releaseAll(hung, algo.Succeeded)
	work(time.Second, 200)
	work(5*time.Millisecond, 100)
}
