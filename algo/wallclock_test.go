package algo_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// walking is a clock of a machine, at a given time of the wall clock.
func walking(t time.Time) *fakes.Clock {
	now := time.Now()
	c := fakes.ClockAt(now)
	c.Step(t.Sub(now))
	c.Advance(t.Sub(c.Now().Round(0))) // the rest of a second
	return c
}

// TestSuspendedForFortyDays: a key that has spent its quota is admitted in the next window of the
// wall clock, and the windows end on time from then on.
func TestSuspendedForFortyDays(t *testing.T) {
	for _, period := range []string{"day", "week", "month"} {
		clock := walking(time.Date(2026, 1, 9, 20, 0, 0, 0, time.UTC))
		l := onClock(t, "fixed-window 1/"+period+" zone UTC", clock.Now)
		require.True(t, l.Allow("k", 1))
		clock.Step(40 * 24 * time.Hour)
		clock.Advance(time.Second)
		require.True(t, l.Allow("k", 1), period)
		wait := acquire(t, l, "k", 1).RetryAfter
		clock.Advance(wait)
		y, m, d := clock.Now().UTC().Date()
		require.Equal(t, time.Date(y, m, d, 0, 0, 0, 0, time.UTC), clock.Now().UTC().Round(0), "midnight")
		require.True(t, l.Allow("k", 1), period)
	}
}

// TestWallClockSetForward: from a machine without a battery's 1970.
func TestWallClockSetForward(t *testing.T) {
	clock := walking(time.Date(1970, 1, 1, 0, 0, 10, 0, time.UTC))
	l := onClock(t, "fixed-window 2/day zone Europe/Berlin", clock.Now)
	require.True(t, l.Allow("k", 2))
	clock.Step(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Sub(clock.Now()))
	clock.Advance(time.Second)
	require.True(t, l.Allow("k", 1))
	require.InDelta(t, 10*time.Hour, acquire(t, l, "k", 0).ResetAfter, float64(time.Second), "22:00 UTC")
	require.NoError(t, l.SetRate(algo.PerDay(3)))
	clock.Step(-time.Hour)
	clock.Advance(time.Second)
	require.InDelta(t, 11*time.Hour, acquire(t, l, "k", 0).ResetAfter, 2*float64(time.Second))
	require.True(t, l.Allow("k", 2), "what was spent is kept by the change and by the step")
	require.False(t, l.Allow("k", 1))
}

// TestWallClockSetBack: the key waits for the end of the window that the clock shows, not for the
// time that it showed before, and gets one quota more for the window that begins again.
func TestWallClockSetBack(t *testing.T) {
	clock := walking(time.Date(2026, 3, 20, 23, 0, 0, 0, time.UTC))
	l := onClock(t, "fixed-window 10/day zone UTC", clock.Now)
	require.True(t, l.Allow("k", 3))
	clock.Step(-70 * 24 * time.Hour) // to January 9
	clock.Advance(time.Second)
	require.EqualValues(t, 7, acquire(t, l, "k", 0).Remaining)
	require.True(t, l.Allow("k", 7))
	require.InDelta(t, time.Hour, acquire(t, l, "k", 1).RetryAfter, 2*float64(time.Second))
	clock.Advance(time.Hour)
	require.True(t, l.Allow("k", 10))
	require.False(t, l.Allow("k", 1))
}

// TestWindowsFollowTheWallClock, a property: the clock runs, is suspended, is set forward and back,
// and drifts. Keys wait no longer than for the end of the window that it shows, are admitted in each
// that begins, and get one quota for each, and at most one more for each step back.
func TestWindowsFollowTheWallClock(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 6))
		zone := []string{"UTC", "America/New_York", "Australia/Lord_Howe"}[random.IntN(3)]
		kind := random.IntN(3)
		where, err := time.LoadLocation(zone)
		require.NoError(t, err)
		clock := walking(time.Date(2026, time.Month(1+random.IntN(12)), 1+random.IntN(28), random.IntN(24), 0, 0, 0, where))
		// window numbers the window of t, and returns its end.
		window := func(t time.Time) (index int, end time.Time) {
			t = t.Round(0).In(where)
			y, m, d := t.Date()
			switch kind {
			case 0:
				return y*366 + t.YearDay(), time.Date(y, m, d+1, 0, 0, 0, 0, where)
			case 1:
				monday := d - (int(t.Weekday())+6)%7
				begin := time.Date(y, m, monday, 0, 0, 0, 0, where)
				return int(begin.Unix() / (7 * 86400)), time.Date(y, m, monday+7, 0, 0, 0, 0, where)
			}
			return y*12 + int(m), time.Date(y, m+1, 1, 0, 0, 0, 0, where)
		}
		const quota = 5
		l := onClock(t, fmt.Sprintf("fixed-window %d/%s zone %s", quota, []string{"day", "week", "month"}[kind], zone), clock.Now)
		at, _ := window(clock.Now())
		budget, spent, past := int64(quota), int64(0), ""
		for range 300 {
			was := clock.Now()
			switch random.IntN(6) {
			case 0:
				clock.Step(time.Duration(random.Int64N(45*86400)) * time.Second)
				past += " forward"
			case 1:
				clock.Step(-time.Duration(random.Int64N(45*86400)) * time.Second)
				budget += quota
				past += " back"
			case 2:
				clock.Step(time.Duration(random.IntN(7)-3) * time.Second)
				budget += quota // perhaps back
			default:
				clock.Advance(time.Duration(random.ExpFloat64() * float64(30*time.Hour)))
			}
			clock.Advance(time.Second) // the wall clock is read once a second
			early, _ := window(clock.Now().Add(-2 * time.Second))
			late, end := window(clock.Now().Add(2 * time.Second))
			if late > at {
				budget += quota
			}
			fresh := early > at
			at = late
			n := 1 + random.Int64N(3)
			if fresh {
				require.True(t, l.Allow("k", 1), "seed %d: %v to %v after%s", seed, was, clock.Now(), past)
				spent++
			}
			for l.Allow("k", n) {
				spent += n
			}
			require.LessOrEqual(t, spent, budget, "seed %d: %v to %v after%s", seed, was, clock.Now(), past)
			d := acquire(t, l, "k", quota)
			if d.Allowed {
				spent += quota
			} else {
				left := end.Sub(clock.Now().Round(0))
				require.InDelta(t, left, d.RetryAfter, 4*float64(time.Second), "seed %d: %v to %v after%s", seed, was, clock.Now(), past)
			}
		}
	}
}

// TestManySteps: however often the clock is set within a window, and the machine suspended, the
// keys keep what they have spent, and leases give it back.
func TestManySteps(t *testing.T) {
	for name, step := range map[string]func(i int) time.Duration{
		"suspended":    func(int) time.Duration { return time.Hour },
		"to and fro":   func(i int) time.Duration { return time.Duration(1-2*(i%2)) * time.Minute },
		"ahead and on": func(i int) time.Duration { return time.Duration(2-3*(i%2)) * time.Minute },
	} {
		clock := walking(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		l := onClock(t, "fixed-window 10/month zone UTC", clock.Now)
		require.True(t, l.Allow("k", 10))
		require.True(t, l.Allow("idle", 1))
		lease := acquire(t, l, "lease", 10)
		for i := range 500 {
			clock.Step(step(i))
			clock.Advance(time.Second)
			require.False(t, l.Allow("k", 1), "%s: step %d", name, i)
		}
		require.EqualValues(t, 9, acquire(t, l, "idle", 0).Remaining, name)
		lease.Release(algo.Canceled)
		require.EqualValues(t, 10, acquire(t, l, "lease", 0).Remaining, name)
		left := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).Sub(clock.Now().Round(0))
		require.Equal(t, left, acquire(t, l, "k", 1).RetryAfter, name)
		clock.Advance(left)
		require.True(t, l.Allow("k", 10), name)
	}
}
