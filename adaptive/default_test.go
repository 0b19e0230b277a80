package adaptive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

func newRemote(workers int, service time.Duration) *remote {
	return &remote{free: make([]time.Duration, workers), service: service}
}

// TestDefaultBehindASlowDependency: a pool behind the service is the bottleneck and
// the processor is idle. At .85 of its capacity no request is denied. Above it the
// pool stays busy, and response times stay within half of the target and a service time.
func TestDefaultBehindASlowDependency(t *testing.T) {
	for _, row := range []struct {
		workers int
		service time.Duration
		load    float64
		cost    int64
	}{
		{10, 10 * time.Millisecond, 2, 1},
		{10, 10 * time.Millisecond, 10, 1},
		{1, time.Millisecond, 5, 1},
		{100, 50 * time.Millisecond, 3, 1},
		{4, 200 * time.Millisecond, 3, 1},
		{100, 50 * time.Millisecond, 3, 10},
		{4, 200 * time.Millisecond, 3, 1000},
	} {
		m := newModel()
		l := m.limiter(t, adaptive.Default(m.option()))
		r := newRemote(row.workers, row.service)
		r.cost = row.cost
		capacity := float64(row.workers) / row.service.Seconds()
		require.Zero(t, denied(r.play(t, m, l, .85*capacity, 20*time.Second), 0), "%+v", row)

		start := m.at
		all := r.play(t, m, l, row.load*capacity, 20*time.Second)
		from := start + 5*time.Second
		require.Greater(t, (1-denied(all, from))*row.load, .93, "%+v", row)
		require.Less(t, longest(all, from), 260*time.Millisecond+row.service, "%+v", row)

		start = m.at
		all = r.play(t, m, l, .85*capacity, 10*time.Second)
		require.Zero(t, denied(all, start+2*time.Second), "%+v", row)
	}
}

// TestDefaultBehindADependencyThatSlowsDown: five times slower at the same load.
func TestDefaultBehindADependencyThatSlowsDown(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(10, 10*time.Millisecond)
	r.play(t, m, l, 850, 20*time.Second)
	r.service = 50 * time.Millisecond
	start := m.at
	all := r.play(t, m, l, 850, 30*time.Second)
	from := start + 10*time.Second
	require.Greater(t, (1-denied(all, from))*850/200, .93)
	require.Less(t, longest(all, from), 260*time.Millisecond+r.service)
}

// TestDefaultWhenWorkChanges: requests that are slow by nature are no queue. Some
// are denied until the new time is the usual one.
func TestDefaultWhenWorkChanges(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(1000, time.Millisecond)
	require.Zero(t, denied(r.play(t, m, l, 500, 20*time.Second), 0))
	r.service = 100 * time.Millisecond
	start := m.at
	all := r.play(t, m, l, 500, 30*time.Second)
	require.Zero(t, denied(all, start+15*time.Second))
}

// TestHook: each begin and each end of a limit, and each other cause, is said once, with the numbers.
func TestHook(t *testing.T) {
	m := newModel()
	var said []string
	l := m.limiter(t, adaptive.Default(m.option(), adaptive.WithHook(func(s adaptive.State) {
		said = append(said, fmt.Sprint(s.Name, s.Overloaded, s.Cause))
	})))
	r := newRemote(10, 10*time.Millisecond)
	r.play(t, m, l, 850, 20*time.Second)
	require.Empty(t, said)
	r.play(t, m, l, 2000, 5*time.Second)
	require.Len(t, said, 1)
	require.Regexp(t, "^sojourntruenew work would take .* s, .* times the target, .* % of it by the work in flight, nothing waits", said[0])
	r.play(t, m, l, 500, 10*time.Second)
	require.Len(t, said, 2)
	require.Equal(t, "sojournfalse10 % of the arrivals found no slot", said[1])
	r.service = time.Hour
	r.play(t, m, l, 500, 10*time.Second)
	require.Equal(t, "sojourntruenothing completes, nothing waits for the processor", said[2])
}

// TestNoHangAfterAPause: nothing ended in a pause, because nothing was in flight.
func TestNoHangAfterAPause(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(10, 10*time.Millisecond)
	for _, pause := range []time.Duration{0, 700 * time.Millisecond, 3 * time.Second} {
		require.Zero(t, denied(r.play(t, m, l, 500, 5*time.Second), 0))
		m.at += pause
		var leases []algo.Lease
		for range 60 {
			lease := acquire(t, l, "", 1)
			require.True(t, lease.Allowed, "%v, after %d", pause, len(leases))
			leases = append(leases, lease)
			m.at += time.Millisecond
		}
		releaseAll(leases, algo.Succeeded)
	}
}

// TestDefaultBehindAHungDependency: nothing completes.
func TestDefaultBehindAHungDependency(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(10, 10*time.Millisecond)
	r.play(t, m, l, 850, 20*time.Second)
	r.service = time.Hour
	r.play(t, m, l, 850, 10*time.Second)
	require.LessOrEqual(t, l.InFlight(), 2*850, "two seconds of arrivals")
	require.Equal(t, "nothing completes, nothing waits for the processor", l.Explain().Strategies[1].Cause)
	require.False(t, acquire(t, l, "", 1).Allowed)
	require.NotZero(t, l.Explain().Denied.Hang)
}
