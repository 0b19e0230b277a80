package adaptive_test

import (
	"sync"
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
			lease.Release(algo.Succeeded | algo.Untimed)
			return lease.Allowed
		}
		require.True(t, admits(most))
		require.False(t, admits(most+1))
	}
}

// drains reports whether a burst passes that drains in time where requests do not share
// connections, of 1 ms each.
func drains(t *testing.T, m *model, l *adaptive.Limiter) bool {
	t.Helper()
	m.goroutines = 5000
	m.at += time.Second
	m.serve(t, l, time.Millisecond, .5, 5*time.Second)
	m.batch = 200
	defer func() { m.batch = 0 }()
	return denied(m.serve(t, l, time.Millisecond, 1000, 200*time.Microsecond), 0) == 0
}

// TestMostRequestsShareConnections: where most requests come over HTTP/2, and only there, they
// wait as over gRPC. A few change nothing, whatever was declared stays, and many at once leave
// what the last ones say.
func TestMostRequestsShareConnections(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Min(adaptive.RunQueue(m.option()), adaptive.Fixed(1000)))
	note := func(n int, yes bool) {
		for range n {
			l.SharesConnection(yes)
		}
	}
	for range 1000 {
		note(1, true)
		note(1, false)
	}
	note(255, true)
	require.True(t, drains(t, m, l))
	note(1, true)
	require.False(t, drains(t, m, l))
	note(255, false)
	note(1000, true)
	note(255, false)
	require.False(t, drains(t, m, l))
	note(1, false)
	require.True(t, drains(t, m, l))

	for _, last := range []bool{true, false} {
		for phase := range 6 {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() { note(1000, phase%2 == 0 == last) })
			}
			all.Wait()
		}
		note(300, last)
		require.NotEqual(t, last, drains(t, m, l))
	}
	l.Multiplexed()
	note(1000, false)
	require.False(t, drains(t, m, l))
}
