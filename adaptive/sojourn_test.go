package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestDefaultBesideARunQueue: a queue in front of the processor that is never empty, as with the
// readers of net/http, excuses no pool.
func TestDefaultBesideARunQueue(t *testing.T) {
	m := newModel()
	m.runnable = 1
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(4, 50*time.Millisecond)
	require.Zero(t, denied(r.play(t, m, l, 68, 10*time.Second), 0))
	start := m.at
	all := r.play(t, m, l, 400, 10*time.Second)
	require.InDelta(t, .8, denied(all, start+time.Second), .03)
	require.Less(t, longest(all, start+2*time.Second), 300*time.Millisecond)
	require.Regexp(t, `^new work would take 0\.\d+ s, 0\.\d times the target, nothing waits for the processor$`,
		l.Explain().Strategies[1].Cause)
}

// TestDefaultWithoutASuccess: where all clients have left before their work is done, Default knows
// the pool by what ends.
func TestDefaultWithoutASuccess(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(4, 50*time.Millisecond)
	r.play(t, m, l, 68, 10*time.Second)
	r.outcome = algo.Failed | algo.Untimed
	start := m.at
	all := r.play(t, m, l, 400, 10*time.Second)
	require.InDelta(t, .8, denied(all, start+time.Second), .05)
	r.outcome = algo.Succeeded
	start = m.at
	all = r.play(t, m, l, 68, 10*time.Second)
	require.Zero(t, denied(all, start+2*time.Second))
}

// TestDefaultSpiral: work that becomes slow by nature is no queue. A limit that falls because of it
// takes the rate along, which shows that: all connections are busy again.
func TestDefaultSpiral(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(20, 20*time.Millisecond)
	r.play(t, m, l, 850, 10*time.Second)
	r.service = 100 * time.Millisecond
	start := m.at
	all := r.play(t, m, l, 850, 10*time.Second)
	require.Greater(t, (1-denied(all, start+3*time.Second))*850/200, .93)
}

// TestDefaultLetsAsUsualWorkPass: what is in flight for long says nothing while other work
// succeeds in its usual time.
func TestDefaultLetsAsUsualWorkPass(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	r := newRemote(100, 5*time.Millisecond)
	r.play(t, m, l, 200, 5*time.Second)
	hung := fill(t, l, 500)
	require.Len(t, hung, 500)
	require.Zero(t, denied(r.play(t, m, l, 200, 5*time.Second), 0))
	releaseAll(hung, algo.Failed)
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

// TestDependencyHalfBelongsToALimiter: as any strategy.
func TestDependencyHalfBelongsToALimiter(t *testing.T) {
	s := adaptive.Sojourn()
	newLimiter(t, s)
	_, err := adaptive.New(s)
	require.ErrorContains(t, err, "already in use")
}
