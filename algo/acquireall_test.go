package algo_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestAcquireAllRefusesWhatCannotBeDecided(t *testing.T) {
	l := bucket(algo.PerHour(5))
	choice := algo.Request{Limiter: l, Key: "k", N: 1}
	in(t, map[string]struct {
		reqs []algo.Request
		is   error
		says string
	}{
		"nothing":       {nil, algo.ErrRequest, "no requests"},
		"no limiter":    {[]algo.Request{choice, {Key: "k", N: 1}}, algo.ErrRequest, "request 2 of 2 has no limiter"},
		"negative cost": {[]algo.Request{choice, {Limiter: l, N: -3}}, algo.ErrCost, "request 2 of 2: algo: cost out of range: n is -3"},
		"single":        {[]algo.Request{{Limiter: l, N: -3}}, algo.ErrCost, "n is -3"},
		"broken":        {[]algo.Request{choice, choice, {Limiter: broken, N: 1}}, errBroken, "request 3 of 3 (algo_test.limiterFunc): broken"},
	}, func(t *testing.T, c struct {
		reqs []algo.Request
		is   error
		says string
	}) {
		lease, err := algo.AcquireAll(bg, c.reqs...)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		require.False(t, lease.Allowed)
		require.Nil(t, lease.Parts())
		lease.Release(algo.Canceled)
		require.Equal(t, int64(5), drain(t, l, "k"), "nothing stays charged")
		l.Reset("k")
	})
}

// drain takes what is left, unit by unit.
func drain(t require.TestingT, l algo.Limiter, key string) (n int64) {
	for ; n < 1000; n++ {
		lease := must(t, l, key, 1)
		if !lease.Allowed || lease.Delay > 0 {
			lease.Release(algo.Canceled)
			return n
		}
	}
	require.Fail(t, "no end")
	return n
}

// A service bucket above a bucket of one call: with either exhausted, the other
// is not charged, not even for a moment.
func TestAcquireAllTwoLevels(t *testing.T) {
	const goroutines, rounds = 64, 200
	for _, exhausted := range []int{0, 1} {
		t.Run(fmt.Sprintf("level %d exhausted", exhausted), func(t *testing.T) {
			// A charge outlives 2^61 ticks of refunds, which are 10 000 of an hour
			// each, but 60 000 of ten minutes.
			rate := algo.Per(1, 10*time.Minute)
			levels := []*algo.TokenBucket{bucket(rate, algo.MaxKeys(8)), bucket(rate, algo.MaxKeys(8))}
			open := levels[1-exhausted]
			require.NoError(t, open.SetBurst(1000))
			require.True(t, levels[exhausted].Allow("svc", 1))
			var charged atomic.Int64
			group(goroutines, func(int) {
				for range rounds {
					lease, err := algo.AcquireAll(bg,
						algo.Request{Limiter: levels[0], Key: "svc", N: 1},
						algo.Request{Limiter: levels[1], Key: "svc", N: 1})
					if err != nil || lease.Allowed {
						charged.Add(1)
					}
					if exhausted == 0 && open.Len() > 0 {
						charged.Add(1) // the child, behind an exhausted parent
					}
				}
			})
			require.Zero(t, charged.Load())
			left := drainAll(t, open, "svc")
			if exhausted == 0 {
				require.Equal(t, int64(1000), left)
			}
			// Charges that are given back while others are lose the time in
			// between, far less than a unit.
			require.GreaterOrEqual(t, left, int64(999))
		})
	}
}

func drainAll(t require.TestingT, l algo.Limiter, key string) int64 {
	n := peek(t, l, key).Remaining
	require.True(t, must(t, l, key, n).Allowed)
	return n
}

// group runs f in n goroutines and waits for them.
func group(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Goroutines that name the same limits in opposite orders neither block each
// other nor admit too much.
func TestAcquireAllInOppositeOrders(t *testing.T) {
	a, b := bucket(algo.PerDay(300)), bucket(algo.PerDay(500))
	both := [][]algo.Request{
		{{Limiter: a, Key: "k", N: 1}, {Limiter: b, Key: "k", N: 1}},
		{{Limiter: b, Key: "k", N: 1}, {Limiter: a, Key: "k", N: 1}},
	}
	var admitted atomic.Int64
	group(32, func(i int) {
		for range 100 {
			if lease, err := algo.AcquireAll(bg, both[i%2]...); err == nil && lease.Allowed {
				admitted.Add(1)
			}
		}
	})
	require.LessOrEqual(t, admitted.Load(), int64(300))
	// Charges that are given back while others are lose the time in between,
	// far less than a unit.
	require.InDelta(t, 300-admitted.Load(), drain(t, a, "k"), 1, "all charged or none")
	require.InDelta(t, 500-admitted.Load(), drain(t, b, "k"), 1, "all charged or none")
}

func TestAcquireAllSameLimitAndKeyTwice(t *testing.T) {
	l := bucket(algo.PerHour(10))
	other := bucket(algo.PerHour(1))
	twice := func(n, m int64) []algo.Request {
		return []algo.Request{{Limiter: l, Key: "k", N: n}, {Limiter: other, Key: "k", N: 0}, {Limiter: l, Key: "k", N: m}}
	}
	lease := acquireAll(t, twice(3, 4)...)
	require.True(t, lease.Allowed)
	require.Equal(t, int64(3), peek(t, l, "k").Remaining, "charged twice")
	lease.Release(algo.Canceled)
	require.Equal(t, int64(10), peek(t, l, "k").Remaining, "and given back twice")

	lease = acquireAll(t, twice(6, 5)...)
	require.False(t, lease.Allowed)
	require.Equal(t, algo.Never, lease.Reason, "11 of 10 never fit at once, though 6 and 5 do one after the other")
	require.Equal(t, int64(10), peek(t, l, "k").Remaining)

	uncomparable := limiterFunc(l.Acquire)
	lease = acquireAll(t, algo.Request{Limiter: uncomparable, N: 6}, algo.Request{Limiter: uncomparable, N: 5})
	require.False(t, lease.Allowed)
}

func TestAcquireAllReleasesInReverse(t *testing.T) {
	var log []string
	reqs := make([]algo.Request, 0, 5)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		reqs = append(reqs, algo.Request{Limiter: recorder{name, &log}, N: 1})
	}
	lease := acquireAll(t, reqs...)
	lease.Settle(4)
	lease.Release(algo.Failed)
	lease.Release(algo.Canceled)
	lease.Settle(9)
	require.Equal(t, []string{
		"a settled", "b settled", "c settled", "d settled", "e settled",
		"e failed", "d failed", "c failed", "b failed", "a failed",
	}, log)

	log = nil
	denied := acquireAll(t, reqs[0], reqs[1], algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}, reqs[2])
	denied.Release(algo.Failed)
	require.Equal(t, []string{"b canceled", "a canceled"}, log[:2], "given back at once")
	require.NotContains(t, log, "a failed")
}

func TestAcquireAllSettlesAll(t *testing.T) {
	a, b := bucket(algo.PerHour(10)), bucket(algo.PerHour(10))
	lease := acquireAll(t, algo.Request{Limiter: a, N: 5}, algo.Request{Limiter: b, N: 3})
	lease.Settle(3)
	require.Equal(t, int64(7), peek(t, a, "").Remaining)
	require.Equal(t, int64(7), peek(t, b, "").Remaining)
	lease.Settle(6)
	require.Equal(t, int64(4), peek(t, a, "").Remaining)
	require.Equal(t, int64(4), peek(t, b, "").Remaining)
	lease.Release(algo.Succeeded)
	lease.Settle(0)
	require.Equal(t, int64(4), peek(t, a, "").Remaining)
}

// A limiter that panics leaves nothing charged behind, neither when it is asked
// nor when it is released.
func TestAcquireAllPanics(t *testing.T) {
	a, b := bucket(algo.PerHour(3)), bucket(algo.PerHour(3))
	panics := limiterFunc(func(context.Context, string, int64) (algo.Lease, error) { panic("limiter") })
	for range 100 {
		require.PanicsWithValue(t, "limiter", func() {
			_, _ = algo.AcquireAll(bg, algo.Request{Limiter: a, N: 1}, algo.Request{Limiter: b, N: 1}, algo.Request{Limiter: panics, N: 1})
		})
	}
	require.Equal(t, int64(3), drain(t, a, ""))
	require.Equal(t, int64(3), drain(t, b, ""))

	c := bucket(algo.PerHour(3))
	lease := acquireAll(t, algo.Request{Limiter: c, N: 3}, algo.Request{Limiter: badReleaser{}, N: 1}, algo.Request{Limiter: badReleaser{}, N: 1})
	require.PanicsWithValue(t, "release", func() { lease.Release(algo.Canceled) })
	require.Equal(t, int64(3), drain(t, c, ""))
}

type badReleaser struct{}

func (b badReleaser) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, b, algo.Handle{}), nil
}
func (badReleaser) Release(algo.Handle, algo.Outcome) { panic("release") }
func (badReleaser) Settle(algo.Handle, int64)         {}

// A caller that gives up and a panicking handler, with the lease deferred.
func TestAcquireAllReleasedByPanickingWork(t *testing.T) {
	a, b := bucket(algo.PerHour(3)), bucket(algo.PerHour(3))
	for range 50 {
		require.Panics(t, func() {
			lease := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 2})
			defer lease.Release(algo.Canceled)
			panic("handler")
		})
	}
	require.Equal(t, int64(3), drain(t, a, ""))
	require.Equal(t, int64(3), drain(t, b, ""))
}

// What a limiter of another package would say is found without charging it,
// where a peek can tell or a denial does.
func TestAcquireAllAsksForeignLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty := bucket(algo.PerMinute(1))
		require.True(t, empty.Allow("", 1))
		first := algo.Request{Limiter: empty, N: 1}

		fits := &foreign{Limiter: bucket(algo.PerHour(10))}
		lease := acquireAll(t, first, algo.Request{Limiter: fits, N: 10})
		require.Equal(t, time.Minute, lease.RetryAfter)
		require.Empty(t, fits.charges)

		short := &foreign{Limiter: bucket(algo.PerHour(10))}
		require.True(t, must(t, short.Limiter, "", 3).Allowed)
		lease = acquireAll(t, first, algo.Request{Limiter: short, N: 10})
		require.Equal(t, 18*time.Minute, lease.RetryAfter, "10 units, not one")
		require.Empty(t, short.charges)

		shaped := &foreign{Limiter: bucket(algo.PerHour(10), algo.MaxWait(time.Hour))}
		lease = acquireAll(t, first, algo.Request{Limiter: shaped, N: 15})
		require.Equal(t, time.Minute, lease.RetryAfter)
		require.True(t, lease.Parts()[1].Allowed)
		require.Equal(t, int64(10), peek(t, shaped.Limiter, "").Remaining, "given back")

		lease = acquireAll(t, first, algo.Request{Limiter: broken, N: 1})
		require.False(t, lease.Allowed, "a denial stands when another limit cannot be asked")
		require.Equal(t, algo.Decision{}, lease.Parts()[1])
	})
}

// An in-flight limiter is only peeked: it might let the request wait.
func TestAcquireAllOnlyPeeksInFlightLimits(t *testing.T) {
	full := &inFlight{left: 0}
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: time.Second}), N: 1}
	lease := acquireAll(t, deny, algo.Request{Limiter: full, N: 1})
	require.Equal(t, algo.Overload, lease.Reason)
	require.Equal(t, 5*time.Second, lease.RetryAfter)
	require.Equal(t, []int64{0}, full.asked)

	lease = acquireAll(t, deny, algo.Request{Limiter: full, N: 11})
	require.Equal(t, algo.Never, lease.Reason)
	require.Equal(t, algo.Forever, lease.RetryAfter)
}

type inFlight struct {
	left  int64
	asked []int64
}

func (f *inFlight) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	f.asked = append(f.asked, n)
	d := algo.Decision{Allowed: n == 0, Limit: 10, Remaining: f.left, NextAfter: 5 * time.Second}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}

func (f *inFlight) Describe() (algo.Description, bool) {
	return algo.Description{Quota: 10, Unit: algo.ConcurrentRequests}, true
}

// One reading of the clock serves all the limits: they cannot disagree about
// the time, and a limiter that was made after it is no exception.
func TestAcquireAllWithALimiterMadeMeanwhile(t *testing.T) {
	old := bucket(algo.PerHour(5))
	late := algo.ByKey(func(context.Context, string) algo.Limiter { return bucket(algo.PerHour(5)) })
	for range 100 {
		lease := acquireAll(t, algo.Request{Limiter: old, N: 1}, algo.Request{Limiter: late, N: 5})
		require.True(t, lease.Allowed)
		require.Zero(t, lease.Delay)
		lease.Release(algo.Canceled)
	}
}

func TestAcquireAllAllocates(t *testing.T) {
	var reqs []algo.Request
	for range 6 {
		reqs = append(reqs, algo.Request{Limiter: bucket(algo.PerSecond(1_000_000), algo.Burst(1<<40)), Key: "k", N: 1})
	}
	empty := bucket(algo.PerHour(1))
	empty.Allow("", 1)
	in(t, map[string]struct {
		reqs []algo.Request
		want float64
	}{
		"one":    {reqs[:1], 0},
		"two":    {reqs[:2], 1},
		"four":   {reqs[:4], 1},
		"six":    {reqs, 2},
		"denied": {append(reqs[:3:3], algo.Request{Limiter: empty, N: 1}), 1},
	}, func(t *testing.T, c struct {
		reqs []algo.Request
		want float64
	}) {
		require.Equal(t, c.want, testing.AllocsPerRun(100, func() {
			lease, _ := algo.AcquireAll(bg, c.reqs...)
			lease.Release(algo.Succeeded)
		}))
	})
	for name, l := range map[string]algo.Limiter{
		"single": reqs[0].Limiter, "shadow": algo.Shadow(empty), "switch": algo.NewSwitch(reqs[0].Limiter),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			lease, _ := l.Acquire(bg, "", 1)
			lease.Release(algo.Succeeded)
		}), name)
	}
}
