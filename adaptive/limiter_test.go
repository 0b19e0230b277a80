package adaptive_test

import (
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

func TestAdmitsUpToTheLimit(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(3))
	for want := int64(2); want >= 0; want-- {
		lease := acquire(t, l, "any", 1)
		require.True(t, lease.Allowed)
		require.Equal(t, int64(3), lease.Limit)
		require.Equal(t, want, lease.Remaining)
		defer lease.Release(algo.Succeeded)
	}
	denied := acquire(t, l, "other", 1)
	require.False(t, denied.Allowed)
	require.Equal(t, algo.Overload, denied.Reason)
	require.Zero(t, denied.Remaining)
	require.Positive(t, denied.RetryAfter)
	require.Positive(t, denied.NextAfter)
	require.GreaterOrEqual(t, denied.ResetAfter, denied.NextAfter)
	require.Equal(t, 3, l.InFlight())
	require.Equal(t, 3, l.Limit())
	denied.Release(algo.Succeeded)
	require.Equal(t, 3, l.InFlight(), "a denied lease has nothing to release")
}

func TestWeights(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(10))
	heavy := acquire(t, l, "", 8)
	require.True(t, heavy.Allowed)
	require.False(t, acquire(t, l, "", 3).Allowed)
	light := acquire(t, l, "", 2)
	require.True(t, light.Allowed, "a denied large request does not block a small one")
	heavy.Release(algo.Succeeded)
	require.Equal(t, 2, l.InFlight())
	light.Settle(5)
	require.Equal(t, 5, l.InFlight())
	light.Settle(12)
	require.Equal(t, 12, l.InFlight(), "an actual cost counts even above the limit")
	require.False(t, acquire(t, l, "", 1).Allowed)
	light.Release(algo.Succeeded)
	require.Zero(t, l.InFlight())
}

func TestAbsurdCosts(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(10))
	for _, n := range []int64{-1, math.MinInt64} {
		lease, err := l.Acquire(background, "", n)
		require.ErrorIs(t, err, algo.ErrCost)
		lease.Release(algo.Canceled)
	}
	for _, n := range []int64{11, 1 << 40, math.MaxInt64} {
		lease := acquire(t, l, "", n)
		require.False(t, lease.Allowed)
		require.Equal(t, algo.Never, lease.Reason)
		require.Equal(t, algo.Forever, lease.RetryAfter)
	}
	for range 3 { // neither overflows the count nor leaks
		lease := acquire(t, l, "", 1)
		lease.Settle(math.MaxInt64)
		require.False(t, acquire(t, l, "", 1).Allowed)
		lease.Settle(math.MaxInt64 - 1)
		lease.Release(algo.Succeeded)
		require.Zero(t, l.InFlight())
	}
}

func TestPeek(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(2))
	for want := int64(2); want >= 0; want-- {
		peek := acquire(t, l, "", 0)
		require.True(t, peek.Allowed)
		require.Equal(t, want, peek.Remaining)
		peek.Release(algo.Succeeded)
		acquire(t, l, "", 1)
	}
	require.Equal(t, 2, l.InFlight())
}

func TestDescribesItself(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(7))
	d := algo.About(l)
	require.Equal(t, algo.Description{Quota: 7, Unit: algo.ConcurrentRequests, Shared: true, NeedsRelease: true}, d)
}

func TestReleaseTwice(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(2))
	held := acquire(t, l, "", 1)
	for _, o := range []algo.Outcome{algo.Succeeded, algo.Failed, algo.Succeeded | algo.Untimed, algo.Canceled} {
		lease := acquire(t, l, "", 1)
		lease.Release(o)
		lease.Release(algo.Canceled)
		lease.Release(o)
		require.Equal(t, 1, l.InFlight())
	}
	held.Release(algo.Succeeded)
	require.Zero(t, l.InFlight())
}

func TestRetryEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Fixed(10))
		require.Equal(t, time.Second, first(t, l, 10).RetryAfter, "no work has completed")
		for range 100 {
			lease := acquire(t, l, "", 1)
			time.Sleep(200 * time.Millisecond)
			lease.Release(algo.Succeeded)
		}
		// Ten slots, each free after 200 ms: one every 20 ms.
		require.InDelta(t, 20*time.Millisecond, first(t, l, 10).RetryAfter, 1e6)
		leases := fill(t, l, 10)
		require.InDelta(t, 100*time.Millisecond, acquire(t, l, "", 5).RetryAfter, 1e6)
		require.InDelta(t, 200*time.Millisecond, acquire(t, l, "", 1).ResetAfter, 1e6)
		releaseAll(leases, algo.Succeeded|algo.Untimed)
	})
}

// first fills l, returns the first denial, and makes l empty again.
func first(t *testing.T, l *adaptive.Limiter, most int) algo.Decision {
	t.Helper()
	leases := fill(t, l, most)
	denied := acquire(t, l, "", 1)
	require.False(t, denied.Allowed)
	releaseAll(leases, algo.Succeeded|algo.Untimed)
	return denied.Decision
}

// recorder is a strategy that records its samples.
type recorder struct {
	limit   atomic.Int64
	samples []adaptive.Sample
}

func newRecorder(limit int) *recorder {
	p := new(recorder)
	p.limit.Store(int64(limit))
	return p
}

func (p *recorder) Limit() int                { return int(p.limit.Load()) }
func (p *recorder) Observe(s adaptive.Sample) { p.samples = append(p.samples, s) }

// TestC2_Samples: successes and slow failures are samples; cancellations, ignored
// work and failures faster than a success are not.
func TestC2_Samples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRecorder(100)
		l := newLimiter(t, p)
		work := func(d time.Duration, o algo.Outcome) {
			lease := acquire(t, l, "", 2)
			time.Sleep(d)
			lease.Release(o)
		}
		work(time.Second, algo.Failed) // slow or fast? no success to compare it with
		require.Empty(t, p.samples)
		work(100*time.Millisecond, algo.Succeeded)
		require.Len(t, p.samples, 1)
		require.Equal(t, 100*time.Millisecond, p.samples[0].RTT)
		require.Equal(t, 2, p.samples[0].InFlight)
		for _, o := range []algo.Outcome{algo.Canceled, algo.Succeeded | algo.Untimed} {
			work(time.Minute, o)
			work(time.Nanosecond, o)
		}
		for range 1000 { // 150 ms of fast errors
			work(150*time.Microsecond, algo.Failed)
		}
		require.Len(t, p.samples, 1)
		work(5*time.Second, algo.Failed)
		require.Len(t, p.samples, 2)
		require.Equal(t, algo.Failed, p.samples[1].Outcome)
		require.Equal(t, 100*time.Millisecond, l.Explain().RTT, "only successes make the mean")
	})
}

func TestC2_LimitsBoundTheStrategy(t *testing.T) {
	p := newRecorder(1000)
	l := newLimiter(t, p, adaptive.WithLimits(2, 5))
	require.Equal(t, 5, l.Limit())
	require.Equal(t, algo.Never, acquire(t, l, "", 6).Reason)
	p.limit.Store(-7)
	require.Equal(t, 2, l.Limit())
	one := acquire(t, l, "", 1)
	require.Equal(t, algo.Overload, acquire(t, l, "", 5).Reason, "it fits when the limit rises")
	one.Release(algo.Succeeded)
	require.True(t, acquire(t, l, "", 5).Allowed, "or alone")

	q := newRecorder(0)
	require.Equal(t, 1, newLimiter(t, q).Limit(), "a limit of 0 would end all learning")
}

// TestLoweredLimit: work in flight goes on, and admissions resume when the units in
// flight have fallen below the new limit.
func TestLoweredLimit(t *testing.T) {
	p := newRecorder(10)
	l := newLimiter(t, p)
	leases := fill(t, l, 10)
	p.limit.Store(4)
	for l.InFlight() >= 4 {
		require.False(t, acquire(t, l, "", 1).Allowed, "%d in flight", l.InFlight())
		leases[l.InFlight()-1].Release(algo.Succeeded)
	}
	require.True(t, acquire(t, l, "", 1).Allowed)
}

func TestC2_Min(t *testing.T) {
	a, b := newRecorder(10), newRecorder(20)
	l := newLimiter(t, adaptive.Min(a, b, adaptive.Fixed(15)))
	require.Equal(t, 10, l.Limit())
	a.limit.Store(100)
	require.Equal(t, 15, l.Limit())
	require.Equal(t, algo.Never, acquire(t, l, "", 16).Reason)
	lease := acquire(t, l, "", 1)
	lease.Release(algo.Succeeded)
	require.Len(t, a.samples, 1)
	require.Len(t, b.samples, 1)
	require.Len(t, l.Explain().Strategies, 3)
}

func TestClose(t *testing.T) {
	l := newLimiter(t, adaptive.Fixed(2))
	lease := acquire(t, l, "", 1)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	for _, n := range []int64{0, 1, 3} {
		_, err := l.Acquire(background, "", n)
		require.ErrorIs(t, err, adaptive.ErrClosed)
	}
	lease.Release(algo.Succeeded)
	require.Zero(t, l.InFlight())
}

func TestWiringMistakes(t *testing.T) {
	require.PanicsWithValue(t, "adaptive: New needs a strategy", func() { adaptive.New(nil) })
	require.PanicsWithValue(t, "adaptive: Min needs a strategy", func() { adaptive.Min() })
	require.PanicsWithValue(t, "adaptive: WithLimitOf needs a function", func() { adaptive.WithLimitOf(nil) })
	require.PanicsWithValue(t, "adaptive: Min: strategy 1 is nil", func() { adaptive.Min(adaptive.Fixed(1), nil) })
}

func TestNewErrors(t *testing.T) {
	f := adaptive.Fixed(5)
	for _, row := range []struct {
		s    adaptive.Strategy
		opts []adaptive.Option
		want string
	}{
		{adaptive.Fixed(0), nil, "Fixed: limit is 0"},
		{adaptive.Min(f, adaptive.Fixed(-3)), nil, "Fixed: limit is -3"},
		{f, []adaptive.Option{adaptive.WithLimits(0, 5)}, "lower limit is 0"},
		{f, []adaptive.Option{adaptive.WithLimits(6, 5)}, "upper limit is 5, want 6"},
		{f, []adaptive.Option{{}}, "zero Option"},
		{f, []adaptive.Option{adaptive.WithPriorities(), adaptive.WithPriorities()}, "New: duplicate option WithPriorities"},
		{f, []adaptive.Option{strategy.WithInitial(5)}, "New: does not take the option WithInitial, only WithLimits, WithQueue, WithPriorities"},
		{f, []adaptive.Option{adaptive.WithQueue(adaptive.FIFO(0, time.Second))}, "queue length is 0"},
		{f, []adaptive.Option{adaptive.WithQueue(adaptive.FIFO(5, 0))}, "longest wait in the queue is 0s"},
		{f, []adaptive.Option{adaptive.WithQueue(adaptive.FIFO(5, -1))}, "longest wait in the queue is -1ns"},
		{f, []adaptive.Option{adaptive.WithQueue(adaptive.CoDel(5, time.Second, time.Millisecond))}, "target is 1s"},
		{f, []adaptive.Option{adaptive.WithQueue(adaptive.CoDel(5, -1, 0))}, "target is -1ns"},
	} {
		_, err := adaptive.New(row.s, row.opts...)
		require.ErrorContains(t, err, row.want)
	}
}

func TestExplain(t *testing.T) {
	l := newLimiter(t, adaptive.Min(adaptive.Fixed(2), newRecorder(9)))
	fill(t, l, 2)
	acquire(t, l, "", 1)
	acquire(t, l, "", 3)
	e := l.Explain()
	require.Equal(t, adaptive.Denials{Limit: 1, Never: 1}, e.Denied)
	require.Equal(t, "limit 2, 2 in flight, 0 waiting; denied: 1 limit, 1 never; fixed 2; *adaptive_test.recorder 9", e.String())
}
