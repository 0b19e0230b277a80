package algo_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// clocked are limits of every algorithm.
var clocked = append(cases.Limits("4/h", nil), "fixed-window 4/month zone UTC start 31", "fixed-window 4/h aligned 2026-01-31T00:20:00Z")

func onClock(_ *testing.T, text string, now func() time.Time) *algo.RateLimiter {
	return made(text, algo.Clock(now))
}

// TestClockOption: by a clock that the test advances, in parallel subtests, each algorithm
// denies until its RetryAfter has passed, and not a nanosecond longer.
func TestClockOption(t *testing.T) {
	for _, text := range clocked {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			clock := fakes.ClockAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			l := onClock(t, text, clock.Now)
			spent := 0
			for l.Allow("k", 1) {
				spent++
				require.Less(t, spent, 10)
			}
			require.Positive(t, spent)
			d := acquire(t, l, "k", 1)
			for d.Allowed { // delays come before denials
				spent++
				require.Less(t, spent, 10)
				d = acquire(t, l, "k", 1)
			}
			require.Equal(t, algo.Quota, d.Reason)
			clock.Advance(d.RetryAfter - 1)
			require.False(t, acquire(t, l, "k", 1).Allowed)
			clock.Advance(1)
			require.True(t, acquire(t, l, "k", 1).Allowed)
		})
	}
}

// TestClockAgreesWithTheSystem: a limiter on a clock of its own decides as one on the system's
// clock that reads the same.
func TestClockAgreesWithTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, text := range clocked {
			if text == "fixed-window 4/h spread" { // by a secret of each limiter
				continue
			}
			clock, random := fakes.ClockAt(time.Now()), rand.New(rand.NewPCG(1, 2))
			given, system := onClock(t, text, clock.Now), onClock(t, text, time.Now)
			bare := made(text)
			for range 500 {
				n := random.Int64N(3)
				want := acquire(t, bare, "k", n).Decision
				require.Equal(t, want, acquire(t, given, "k", n).Decision, text)
				require.Equal(t, want, acquire(t, system, "k", n).Decision, text)
				d := time.Duration(random.ExpFloat64() * float64(20*time.Minute))
				time.Sleep(d)
				clock.Advance(d)
			}
		}
	})
}

// TestW1_W2_ClockBackAndForth: a log is replayed whose lines go two hours back and forth. Nothing is
// admitted twice for one second.
func TestW1_W2_ClockBackAndForth(t *testing.T) {
	for _, text := range clocked {
		clock := fakes.ClockAt(time.Date(2026, 10, 24, 23, 59, 59, 0, time.UTC))
		l, step, units := onClock(t, text, clock.Now), 2*time.Hour, 0
		for range 1000 {
			if l.Allow("k", 1) {
				units++
			}
			clock.Advance(step)
			step = -step
		}
		require.LessOrEqual(t, units, 12, text) // at most 4 at once, and 4 in each hour
	}
}

// TestClockThatJumps: whatever the clock reads, a key has its burst and what the rate gives from
// the first reading to the latest. A long step forward forgets everything.
func TestClockThatJumps(t *testing.T) {
	clock, random := fakes.ClockAt(time.Time{}), rand.New(rand.NewPCG(3, 4))
	l := onClock(t, "60/h", clock.Now)
	at, latest, spent := time.Duration(0), time.Duration(0), time.Duration(0)
	for range 10_000 {
		d := time.Duration(random.NormFloat64() * float64(time.Hour))
		clock.Advance(d)
		at += d
		latest = max(latest, at)
		for l.Allow("k", 1) {
			spent += time.Minute
		}
		require.LessOrEqual(t, spent, time.Hour+latest)
	}
	require.Greater(t, spent, latest/2)
	clock.Advance(-200 * 365 * 24 * time.Hour)
	require.False(t, l.Allow("k", 1))
	clock.Advance(time.Minute)
	require.False(t, l.Allow("k", 1), "before the latest reading")
	clock.Advance(200*365*24*time.Hour + latest - at)
	require.True(t, l.Allow("k", 1), "a minute after it")
	for range 3 {
		clock.Advance(56 * 365 * 24 * time.Hour) // such as from 1970 to the present
		require.True(t, l.Allow("k", 60))
		require.False(t, l.Allow("k", 1))
		clock.Advance(time.Minute)
		require.True(t, l.Allow("k", 1))
	}
}

// TestChangesKeepTheClock: SetSpec, SetRate, SetBurst and Apply keep it, as do Options.
func TestChangesKeepTheClock(t *testing.T) {
	clock := fakes.ClockAt(time.Unix(0, 0))
	l := onClock(t, "1/h burst 1", clock.Now)
	for _, change := range []func() error{
		func() error { return l.SetSpec(algo.Spec{Rate: algo.PerHour(1), Burst: 1}) },
		func() error { return algo.Spec{Rate: algo.PerHour(1), Burst: 1}.Apply(algo.All(l, algo.Unlimited())) },
		func() error { return l.SetRate(algo.PerHour(1)) },
		func() error { return l.SetBurst(1) },
	} {
		require.True(t, l.Allow("k", 1))
		require.NoError(t, change())
		require.False(t, l.Allow("k", 1))
		clock.Advance(time.Hour)
	}
	again, err := l.Spec().New()
	require.NoError(t, err)
	other, err := algo.NewTokenBucket(algo.PerHour(1), l.Spec().Options()...)
	require.NoError(t, err)
	for _, l := range []*algo.RateLimiter{again, other} {
		require.True(t, l.Allow("k", 1))
		clock.Advance(time.Hour)
		require.True(t, l.Allow("k", 1))
	}
	require.Nil(t, algo.Spec{}.Clock())
	require.Equal(t, clock.Now(), l.Spec().Clock()())
	require.Equal(t, "1/h burst 1", l.Spec().String())
	require.PanicsWithValue(t, "algo: Clock: the function is nil", func() { algo.Clock(nil) })
	_, err = algo.NewTokenBucket(algo.PerHour(1), algo.Clock(time.Now), algo.Clock(time.Now))
	require.ErrorContains(t, err, "duplicate option Clock")
}

// TestClockConcurrently: many callers, and a clock that moves meanwhile.
func TestClockConcurrently(t *testing.T) {
	for _, text := range []string{"100/s", "sliding-window 100/s cells 10", "fixed-window 100/s"} {
		clock := fakes.ClockAt(time.Unix(1e9, 0))
		l := onClock(t, text, clock.Now)
		both := algo.All(l, algo.Must(algo.NewTokenBucket(algo.PerSecond(1e6))))
		var all sync.WaitGroup
		var spent atomic.Int64
		for range 4 {
			all.Go(func() {
				for range 2000 {
					if lease, err := both.Acquire(context.Background(), "k", 1); err == nil && lease.Allowed {
						spent.Add(1)
					}
				}
			})
		}
		all.Go(func() {
			for range 100 {
				clock.Advance(20 * time.Millisecond)
			}
		})
		all.Wait()
		require.LessOrEqual(t, spent.Load(), int64(300), text) // 2 s
		require.GreaterOrEqual(t, spent.Load(), int64(100), text)
	}
}

// TestClockOfOneOfSeveral: limits on different clocks in one decision.
func TestClockOfOneOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakes.ClockAt(time.Unix(0, 0)), fakes.ClockAt(time.Unix(5e9, 0))
		onA, onB, system := onClock(t, "1/h", a.Now), onClock(t, "1/h", b.Now), algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
		for _, order := range [][]algo.Limiter{{onA, onB, system}, {system, onA, onB}, {onB, system, onA}} {
			all := algo.All(order...)
			require.True(t, acquire(t, all, "k", 1).Allowed)
			require.Equal(t, time.Hour, acquire(t, all, "k", 1).RetryAfter)
			a.Advance(30 * time.Minute)
			b.Advance(time.Hour)
			require.Equal(t, time.Hour, acquire(t, all, "k", 1).RetryAfter)
			time.Sleep(time.Hour)
			require.Equal(t, 30*time.Minute, acquire(t, all, "k", 1).RetryAfter)
			a.Advance(30 * time.Minute)
		}
	})
}
