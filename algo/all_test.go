package algo_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestAcquireAllInvalidRequests(t *testing.T) {
	l := bucket(algo.PerHour(5))
	choice := algo.Request{Limiter: l, Key: "k", N: 1}
	in(t, map[string]struct {
		reqs []algo.Request
		is   error
		says string
	}{
		"nothing":       {nil, nil, "algo: invalid request: no requests"},
		"no limiter":    {[]algo.Request{choice, {Key: "k", N: 1}}, nil, "algo: invalid request: request 2 of 2 has no limiter"},
		"negative cost": {[]algo.Request{choice, {Limiter: l, N: -3}}, algo.ErrCost, "request 2 of 2: algo: cost out of range: n is -3"},
		"single":        {[]algo.Request{{Limiter: l, N: -3}}, algo.ErrCost, "n is -3"},
		"broken":        {[]algo.Request{choice, choice, {Limiter: broken, N: 1}}, errBroken, "request 3 of 3 (fakes.Func): broken"},
	}, func(t *testing.T, c struct {
		reqs []algo.Request
		is   error
		says string
	}) {
		lease, err := algo.AcquireAll(bg, c.reqs...)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
		require.ErrorContains(t, err, c.says)
		require.False(t, lease.Allowed)
		require.Nil(t, lease.Parts())
		lease.Release(algo.Canceled)
		require.Equal(t, int64(5), drain(t, l, "k"), "nothing stays charged")
		l.Reset("k")
	})
}

// A service bucket above a bucket of one call: with either exhausted, the other
// is not charged, not even for a moment.
func TestW4_AcquireAllTwoLevels(t *testing.T) {
	const goroutines, rounds = 64, 200
	for _, exhausted := range []int{0, 1} {
		t.Run(fmt.Sprintf("level %d exhausted", exhausted), func(t *testing.T) {
			// A charge outlives 2^61 ticks of refunds, which are 10 000 of an hour
			// each, but 60 000 of ten minutes.
			rate := algo.Per(1, 10*time.Minute)
			levels := []*algo.RateLimiter{bucket(rate, algo.MaxKeys(8)), bucket(rate, algo.MaxKeys(8))}
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
					if exhausted == 0 && open.Stats().Live > 0 {
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

// Goroutines that name the same limits in opposite orders neither block each
// other nor admit too much.
func TestW4_AcquireAllInOppositeOrders(t *testing.T) {
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

func TestW4_AcquireAllSameLimitAndKeyTwice(t *testing.T) {
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

// A limiter that is made in the middle of a decision has a clock of its own,
// which starts later than the others.
func TestAcquireAllOfANewLimiter(t *testing.T) {
	old := bucket(algo.PerHour(5))
	late := algo.ByKey(func(context.Context, string) algo.Limiter { return bucket(algo.PerHour(5)) })
	for range 100 {
		lease := acquireAll(t, algo.Request{Limiter: old, N: 1}, algo.Request{Limiter: late, N: 5})
		require.True(t, lease.Allowed)
		require.Zero(t, lease.Delay)
		lease.Release(algo.Canceled)
	}
}

func TestAllIsOneKeyUnderSeveralLimits(t *testing.T) {
	second, hour, day := bucket(algo.PerSecond(10)), bucket(algo.PerHour(15)), bucket(algo.PerDay(100))
	l := algo.All(second, algo.All(hour, algo.NewSwitch(day)))
	lease := must(t, l, "k", 4)
	require.True(t, lease.Allowed)
	require.Len(t, lease.Parts(), 3, "an All of an All is one All")
	require.Equal(t, int64(6), lease.Remaining)
	lease = must(t, l, "k", 12)
	require.Equal(t, algo.Never, lease.Reason)
	require.Equal(t, []bool{false, false, true}, verdicts(lease.Parts()))
	require.Equal(t, []int64{10, 15, 100}, []int64{lease.Parts()[0].Limit, lease.Parts()[1].Limit, lease.Parts()[2].Limit})
	require.Equal(t, int64(11), peek(t, hour, "k").Remaining)

	d := algo.About(l)
	require.Equal(t, algo.Description{Rate: algo.PerSecond(10), Quota: 10, Window: time.Second}, d)
	require.Zero(t, algo.About(algo.All(broken, broken)).Quota)

	_, err := l.Acquire(bg, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	_, err = algo.All(second, broken).Acquire(bg, "k", 1)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "request 2 of 2")
	require.Same(t, second, algo.All(second))
	require.PanicsWithValue(t, "algo: All: no limiters", func() { algo.All() })
	require.PanicsWithValue(t, "algo: All: the limiter is nil", func() { algo.All(second, nil) })
}

func TestAcquireAllOfAll(t *testing.T) {
	a, b, c := bucket(algo.PerHour(5)), bucket(algo.PerHour(3)), bucket(algo.PerHour(9))
	both := algo.All(a, b)
	lease := acquireAll(t, algo.Request{Limiter: both, N: 2}, algo.Request{Limiter: c, N: 1})
	require.True(t, lease.Allowed)
	require.Len(t, lease.Parts(), 2, "one for each request")
	require.Equal(t, int64(3), lease.Parts()[0].Limit)
	require.Equal(t, int64(8), lease.Parts()[1].Remaining)
	lease.Release(algo.Canceled)
	require.Equal(t, int64(5), peek(t, a, "").Remaining)

	// The same, where the composition cannot be taken apart.
	require.True(t, c.Allow("", 9))
	lease = acquireAll(t, algo.Request{Limiter: c, N: 1}, algo.Request{Limiter: algo.Shadow(both), N: 4})
	require.False(t, lease.Allowed)
	require.Equal(t, algo.SourceTrial, lease.Parts()[1].Source)
	require.Equal(t, algo.Never, lease.Parts()[1].Trial)
	require.Equal(t, int64(3), peek(t, b, "").Remaining)
}

func TestAcquireAllAllocations(t *testing.T) {
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
		"two":    {reqs[:2], 0},
		"four":   {reqs[:4], 0},
		"six":    {reqs, 0},
		"all":    {[]algo.Request{{Limiter: algo.All(reqs[0].Limiter, reqs[1].Limiter), N: 1}, reqs[2]}, 0},
		"denied": {append(reqs[:3:3], algo.Request{Limiter: empty, N: 1}), 0},
	}, func(t *testing.T, c struct {
		reqs []algo.Request
		want float64
	}) {
		least := math.Inf(1) // the race detector and the collector empty pools now and then
		for range 100 {
			least = min(least, testing.AllocsPerRun(10, func() {
				lease, _ := algo.AcquireAll(bg, c.reqs...)
				lease.Release(algo.Succeeded)
			}))
		}
		require.Equal(t, c.want, least)
	})
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		_, _ = algo.AcquireAll(bg, algo.Request{Limiter: empty, N: 1}, reqs[0], reqs[1], reqs[2])
	}), 1.0, "a denial that is never released")
	for name, l := range map[string]algo.Limiter{
		"all":    algo.All(reqs[0].Limiter, reqs[1].Limiter),
		"single": reqs[0].Limiter, "shadow": algo.Shadow(empty), "switch": algo.NewSwitch(reqs[0].Limiter),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			lease, _ := l.Acquire(bg, "", 1)
			lease.Release(algo.Succeeded)
		}), name)
	}
}

// TestW4_OneReading: limiters that were made at different times decide together
// as each does by itself, also after one that waits.
func TestW4_OneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ours, alone [3]*algo.RateLimiter
		for i := range ours {
			ours[i], alone[i] = bucket(algo.PerSecond(1), algo.Burst(9)), bucket(algo.PerSecond(1), algo.Burst(9))
			time.Sleep(time.Hour)
		}
		waits := limiterFunc(func(context.Context, string, int64) (algo.Lease, error) {
			time.Sleep(time.Second)
			return algo.NewLease(algo.Decision{Allowed: true}, nil, algo.Handle{}), nil
		})
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			first, last := must(t, alone[0], "", 1), must(t, alone[2], "", 1)
			lease := acquireAll(t, algo.Request{Limiter: ours[0], N: 1}, algo.Request{Limiter: ours[2], N: 1},
				algo.Request{Limiter: waits, N: 1}, algo.Request{Limiter: ours[1], N: 1})
			middle := must(t, alone[1], "", 1)
			parts := lease.Parts()
			require.Equal(t, []algo.Decision{first.Decision, last.Decision, middle.Decision}, []algo.Decision{parts[0], parts[1], parts[3]})
			for i := range ours {
				require.Equal(t, peek(t, alone[i], ""), peek(t, ours[i], ""))
			}
		}
	})
}

func BenchmarkAcquireAll(b *testing.B) {
	reqs := make([]algo.Request, 4)
	for i := range reqs {
		reqs[i] = algo.Request{Limiter: fastBucket(b), N: 1}
	}
	run := func(name string, reqs ...algo.Request) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, _ := algo.AcquireAll(bg, reqs...)
				lease.Release(algo.Succeeded)
			}
		})
	}
	empty := algo.Request{Limiter: emptyBucket(b), N: 1}
	run("two", reqs[:2]...)
	run("four", reqs...)
	run("deny/first", empty, reqs[0])
	run("deny/last", reqs[0], empty)
}

// A bucket for the service, and one for each of its calls below it.
func ExampleAcquireAll() {
	service := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
	calls := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	ctx := context.Background()

	for _, call := range []string{"list", "list", "list", "get", "get"} {
		lease, err := algo.AcquireAll(ctx,
			algo.Request{Limiter: service, N: 1},
			algo.Request{Limiter: calls, Key: call, N: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		parts := lease.Parts()
		fmt.Printf("%-4s %-5t service %d left, call %d left\n", call, lease.Allowed, parts[0].Remaining, parts[1].Remaining)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// list true  service 2 left, call 1 left
	// list true  service 1 left, call 0 left
	// list false service 1 left, call 0 left
	// get  true  service 0 left, call 1 left
	// get  false service 0 left, call 1 left
}

func ExampleAll() {
	limiter := algo.All(
		algo.Must(algo.NewTokenBucket(algo.PerSecond(10))),
		algo.Must(algo.NewTokenBucket(algo.PerHour(1000))),
	)
	lease, _ := limiter.Acquire(context.Background(), "alice", 4)
	fmt.Println(lease.Allowed, lease.Remaining, "of", lease.Limit)
	for _, part := range lease.Parts() {
		fmt.Println(part.Remaining, "of", part.Limit)
	}
	lease.Release(algo.Succeeded)
	// Output:
	// true 6 of 10
	// 6 of 10
	// 996 of 1000
}

// TestADenialBesideAnError: a denial is the answer, before a limit that fails and after it, to a
// look too; and nothing stays charged.
func TestADenialBesideAnError(t *testing.T) {
	room := bucket(algo.PerHour(9))
	for _, l := range []algo.Limiter{algo.All(room, algo.DenyAll(), broken), algo.All(room, broken, algo.DenyAll()), algo.All(broken, room, algo.DenyAll())} {
		require.Equal(t, algo.Banned, must(t, l, "k", 1).Reason)
		d, err := algo.Peek(bg, l, "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.Banned, d.Reason)
	}
	for _, l := range []algo.Limiter{algo.All(room, broken), algo.All(broken, room)} {
		_, err := l.Acquire(bg, "k", 1)
		require.ErrorIs(t, err, errBroken)
		_, err = algo.Peek(bg, l, "k", 1)
		require.ErrorIs(t, err, errBroken)
	}
	require.EqualValues(t, 9, peek(t, room, "k").Remaining)
}
