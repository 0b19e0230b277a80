package adaptive_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestRunQueueAdmitsWhatDrains: while all goroutines together drain within .85 of the
// target, no request can wait longer, and none is denied, however busy the processor is;
// within a third of that where each waits three times. Of the goroutines most may be idle, such
// as two for each connection of HTTP/2.
func TestRunQueueAdmitsWhatDrains(t *testing.T) {
	testDrains(t, 425, false)
	testDrains(t, 141, true)
}

func testDrains(t *testing.T, ready int, multiplexed bool) {
	const most = 425
	m := newModel()
	l := m.limiter(t, adaptive.RunQueue(m.option()))
	m.runnable, m.goroutines = 1000, 1000
	if multiplexed {
		l.Multiplexed()
	}
	first := acquire(t, l, "", 1)
	require.True(t, first.Allowed, "the cost of a request is unknown")
	first.Release(algo.Succeeded)
	drains := func(goroutines int) bool {
		m.runnable, m.goroutines = ready*9/10, goroutines
		lease := acquire(t, l, "", 1)
		lease.Release(algo.Succeeded | algo.Untimed)
		require.Equal(t, lease.Allowed, acquire(t, l, "", 0).Remaining > 0)
		return lease.Allowed
	}
	for _, more := range []int{most + 5, 5000} {
		m.runnable, m.goroutines = 0, 0
		m.serve(t, l, time.Millisecond, .98, 10*time.Second)
		require.True(t, drains(most-10), "goroutines of 1 ms")
		require.True(t, drains(most-5))
		require.False(t, drains(more))
		require.False(t, drains(most-10), "a queue that stands is no burst")
	}
	m.runnable, m.goroutines = 0, 0
	m.serve(t, l, time.Millisecond, .98, 10*time.Second)
	ready = ready*10/9 + 20
	require.False(t, drains(most-10), "more are ready than drain")
}

// TestRunQueueBehindFewGoroutines: over HTTP/2 a few goroutines read requests without bound, so
// that a standing queue can hide behind what would drain in time; it closes the limit all the
// same. When the load fits again nothing is denied, although denials have taken time.
func TestRunQueueBehindFewGoroutines(t *testing.T) {
	for _, load := range []float64{1.3, 2, 5} {
		m := newModel()
		m.counted, m.batch, m.denial = true, 20, 50*time.Microsecond
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		const work = 500 * time.Microsecond
		require.Zero(t, denied(m.serve(t, l, work, .85, 5*time.Second), 0))
		start := m.at
		all := m.serve(t, l, work, load, 10*time.Second)
		all = slices.DeleteFunc(all, func(v arrival) bool { return v.due > start+9*time.Second }) // the queue shrinks after the last arrivals
		require.Less(t, longest(all, start+2*time.Second), 90*time.Millisecond, "at a load of %v", load)
		start = m.at
		require.Zero(t, denied(m.serve(t, l, work, .85, 5*time.Second), start+time.Second), "after %v", load)
	}
}

// TestRunQueueWhileWorkGetsDearer: requests that take ten times as long from one moment on, at
// fewer of them, stay an overload while the limit decides, and close it as such.
func TestRunQueueWhileWorkGetsDearer(t *testing.T) {
	for _, rate := range []float64{1.01, 1.02, 1.05} { // times the capacity before
		m := newModel()
		m.counted, m.batch, m.denial = true, 20, 50*time.Microsecond
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		const work = 500 * time.Microsecond
		m.serve(t, l, work, 1.3, 10*time.Second)
		start := m.at
		all := m.serve(t, l, 10*work, 10*rate, 30*time.Second)
		all = slices.DeleteFunc(all, func(v arrival) bool { return v.due > start+25*time.Second })
		require.Less(t, longest(all, start+15*time.Second), 40*time.Millisecond, "at a rate of %v", rate)
	}
}

// TestRunQueueBesideIdleConnections: thousands of goroutines that wait for a client's next
// request do not turn a burst that drains in time into an overload, nor hide one.
func TestRunQueueBesideIdleConnections(t *testing.T) {
	const work = 100 * time.Microsecond
	for _, load := range []float64{.15, .5, .7, .85, .92} {
		m := newModel()
		m.goroutines, m.batch = 5000, 300
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		require.Zero(t, denied(m.serve(t, l, work, load, 10*time.Second), 0), "bursts at %v", load)
		m.batch = 0
		for _, times := range []float64{1.3, 2, 5} {
			start := m.at
			all := m.serve(t, l, work, times, 5*time.Second)
			require.Less(t, longest(all, start+time.Second), 50*time.Millisecond, "at a load of %v", times)
			m.serve(t, l, work, load, 5*time.Second)
		}
	}
}

// TestRunQueueAfterAStormOfConnections: what new connections have cost is not long taken for the
// cost of requests, so that bursts pass: 3 s of processor time before the first 500 requests for
// some seconds, a second of it not at all.
func TestRunQueueAfterAStormOfConnections(t *testing.T) {
	const work = 100 * time.Microsecond
	for storm, spoilt := range map[time.Duration]time.Duration{time.Second: 0, 3 * time.Second: 4 * time.Second} {
		for _, load := range []float64{.05, .15, .5} {
			m := newModel()
			m.goroutines = 3300
			l := m.limiter(t, adaptive.RunQueue(m.option()))
			m.burn(storm)
			m.serve(t, l, work, load, time.Second)
			m.batch = 300
			all := m.serve(t, l, work, load, 10*time.Second)
			require.Zero(t, denied(all, all[0].due+spoilt), "a storm of %v, bursts at %v", storm, load)
		}
	}
}

// TestRunQueueAfterALargeBurst: one burst that does not drain in time does not turn away those
// after it that do, although denials take time.
func TestRunQueueAfterALargeBurst(t *testing.T) {
	for _, work := range []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, 5 * time.Millisecond} {
		for _, load := range []float64{.15, .5, .7} {
			for _, drains := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond} {
				m := newModel()
				m.goroutines = 5000
				l := m.limiter(t, adaptive.RunQueue(m.option()))
				m.batch = int(drains / work)
				m.serve(t, l, work, load, 10*time.Second)
				m.batch = int(2 * time.Second / work)
				require.NotZero(t, denied(m.serve(t, l, work, 1000, 2*time.Second/1000), 0))
				m.batch = int(drains / work)
				all := m.serve(t, l, work, load, 10*time.Second)
				require.Zero(t, denied(all, all[0].due+2*time.Second), "work of %v at %v in bursts of %v", work, load, drains)
			}
		}
	}
}

// TestRunQueueBesideItsOwnReaders: in net/http each request has started a goroutine that reads on
// before its handler runs. Were one runnable goroutine a queue that never empties, the use of the
// processor would be taken for all that the process can get, and bursts be denied beside many
// idle connections.
func TestRunQueueBesideItsOwnReaders(t *testing.T) {
	for _, load := range []float64{.3, .5, .85} {
		m := newModel()
		m.goroutines, m.reads = 5000, true
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		m.serve(t, l, 100*time.Microsecond, load, 10*time.Second)
		m.batch = 150
		require.Zero(t, denied(m.serve(t, l, 100*time.Microsecond, load, 10*time.Second), 0), "bursts at %v", load)
	}
}

// TestRunQueueBehindThePoller: Go's poller hands out 128 connections at a time, the others wait
// where no one counts them. Where denials take most of the processor, few of each 128 may be admitted,
// or the queue in the kernel grows until every request is too old.
func TestRunQueueBehindThePoller(t *testing.T) {
	const work, denial = 100 * time.Microsecond, 17 * time.Microsecond
	for _, load := range []float64{2, 3, 5} {
		m := newModel()
		m.goroutines, m.polled, m.denial, m.reads = 5000, 128, denial, true
		l := m.limiter(t, adaptive.RunQueue(m.option()))
		m.serve(t, l, work, .85, 5*time.Second)
		start := m.at
		all := m.serve(t, l, work, load, 20*time.Second)
		all = slices.DeleteFunc(all, func(v arrival) bool { return v.due > start+19*time.Second })
		require.Less(t, longest(all, start+10*time.Second), 50*time.Millisecond, "at a load of %v", load)
		price := float64(denial) / float64(work)
		left := (1 - load*price) / (1 - price)
		require.Greater(t, (1-denied(all, start+10*time.Second))*load/left, .93, "at a load of %v", load)
	}
}
