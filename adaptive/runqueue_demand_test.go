package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestRunQueueAfterAPause: an overload has ended after a pause in the traffic, so a
// burst passes.
func TestRunQueueAfterAPause(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	const work = 5 * time.Millisecond
	m.serve(t, l, work, 5, 10*time.Second)
	require.Equal(t, 6, l.Explain().Strategies[0].Limit)
	m.at += time.Minute
	require.Zero(t, denied(m.serve(t, l, work, 1000, 60*work/1000), 0))
}

// TestRunQueueClosesWithoutProcessorTime: while the use of the processor is unknown,
// denials do not open the limit.
func TestRunQueueClosesWithoutProcessorTime(t *testing.T) {
	m := newModel()
	m.timeless = true
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	m.serve(t, l, 5*time.Millisecond, 5, 20*time.Second)
	require.Equal(t, 6, l.Explain().Strategies[0].Limit)
}

// TestRunQueuePeeksUpdate: peeks alone correct a limit that is too low.
func TestRunQueuePeeksUpdate(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	m.serve(t, l, 5*time.Millisecond, 5, 10*time.Second)
	m.runnable = 10 // no requests; the processor is idle for a third of the time
	for range 2000 {
		m.at += time.Millisecond
		m.used += 600 * time.Microsecond
		if acquire(t, l, "", 0).Remaining > 0 {
			return
		}
	}
	t.Fatal("every request is denied: ", l.Explain())
}

// TestRunQueueIgnoresDenialsElsewhere: a full pool is no overload of the processor,
// of which it uses a third.
func TestRunQueueIgnoresDenialsElsewhere(t *testing.T) {
	m := newModel()
	q := adaptive.RunQueue(m.option())
	l := m.limiter(t, adaptive.Min(q, adaptive.Fixed(1)))
	for range 1000 {
		lease := acquire(t, l, "", 1)
		require.True(t, lease.Allowed)
		for range 9 {
			require.False(t, acquire(t, l, "", 1).Allowed)
		}
		m.used += 3 * time.Millisecond
		m.at += 10 * time.Millisecond
		lease.Release(algo.Succeeded)
	}
	require.False(t, l.Explain().Strategies[0].Overloaded)
}

// TestRunQueueAfterAnIdleHour: the processor time of the process without requests
// is not the cost of requests, so the limit stays wide when they come again.
func TestRunQueueAfterAnIdleHour(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	m.serve(t, l, time.Millisecond, .2, 10*time.Second)
	m.at += time.Hour
	m.used += 36 * time.Second // 1 % of the processor
	for range 20 {
		m.serve(t, l, time.Millisecond, .2, time.Second)
		s := l.Explain().Strategies[0]
		require.False(t, s.Overloaded, s.Cause)
		require.Equal(t, 96, s.Limit)
	}
}

// TestRunQueueBesideOtherWork: of a few requests, none is denied because of
// other work in the process, although this uses half of the processor.
func TestRunQueueBesideOtherWork(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	for range 100 {
		m.at += 500 * time.Millisecond
		m.used += 250 * time.Millisecond
		m.runnable, m.goroutines = 100, 500 // a tick of the other work
		lease := acquire(t, l, "", 1)
		require.True(t, lease.Allowed, l.Explain())
		m.runnable, m.goroutines = 0, 500
		m.burn(50 * time.Microsecond)
		lease.Release(algo.Succeeded)
	}
}
