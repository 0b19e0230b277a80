package algo_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestLimitErrors: every bad input has a message that names the field and the value, and every
// change to one has too.
func TestLimitErrors(t *testing.T) {
	for _, name := range cases.Algorithms() {
		for _, c := range []struct {
			rate algo.Rate
			opts []algo.Option
			want string
		}{
			{algo.PerSecond(0), nil, "rate: count is 0, want 1 or more"},
			{algo.PerSecond(-7), nil, "rate: count is -7"},
			{algo.Per(1, 0), nil, "rate: period is 0s, want more than 0"},
			{algo.Per(1, -1), nil, "rate: period is -1ns"},
			{algo.Per(1, math.MaxInt64), nil, "rate: period is 2562047h47m16.854775807s, want at most 8760h0m0s"},
			{algo.PerSecond(1_000_000_001), nil, "rate: 1000000001/s is faster than 1e9 per second"},
			{algo.PerSecond(math.MaxInt64), nil, "faster than 1e9 per second"},
			{algo.PerSecond(1), []algo.Option{algo.MaxKeys(0)}, "max keys is 0, want 1 to 2147483647"},
			{algo.PerSecond(1), []algo.Option{{}}, "the zero Option is not an option"},
		} {
			l, err := algo.Spec{Algorithm: name, Rate: c.rate}.New(c.opts...)
			require.ErrorContains(t, err, c.want, name)
			require.True(t, strings.HasPrefix(err.Error(), "algo: "+strings.ReplaceAll(name, "-", " ")+": "), err.Error())
			require.Nil(t, l)
		}
	}
}

func TestWindowOptionErrors(t *testing.T) {
	second := algo.PerSecond(10)
	for want, err := range map[string]error{
		"algo: fixed window: offset is -1ns, want 0 or more":                                   errOf(algo.NewFixedWindow(second, algo.Offset(-1))),
		"it cannot be combined with Spread":                                                    errOf(algo.NewFixedWindow(second, algo.Spread(), algo.AlignedTo(time.Unix(0, 0)))),
		"algo: fixed window: aligned to is 0005-01-01 00:00:00 +0000 UTC: more than 291 years": errOf(algo.NewFixedWindow(second, algo.AlignedTo(time.Date(5, 1, 1, 0, 0, 0, 0, time.UTC)))),
		"algo: sliding window: cells is 0, want 1 to 1024":                                     errOf(algo.NewSlidingWindow(second, algo.Cells(0))),
		"algo: sliding window: cells is -1, want 1 to 1024":                                    errOf(algo.NewSlidingWindow(second, algo.Cells(-1))),
		"algo: sliding window: cells is 1025, want 1 to 1024":                                  errOf(algo.NewSlidingWindow(second, algo.Cells(1025))),
		"algo: sliding window: cells is 9, want at most 8 in a period of 8ns":                  errOf(algo.NewSlidingWindow(algo.Per(1, 8), algo.Cells(9))),
		"algo: sliding log: rate: count is 65537, want at most 65536":                          errOf(algo.NewSlidingLog(algo.PerHour(65537))),
		"algo: strict: burst is 11, want 1 to the 10 of the rate":                              errOf(newStrict(second, algo.Burst(11))),
		"algo: strict: burst is 0, want 1 to the 10 of the rate":                               errOf(newStrict(second, algo.Burst(0))),
		"algo: strict: rate: period is 8760h0m0s, want less than 8760h0m0s":                    errOf(newStrict(algo.Per(4, 8760*time.Hour))),
	} {
		require.ErrorContains(t, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestWindowEdges: the classic failures at the edge of a window. The quota is
// 1 a second; the first unit is spent at 999 ms.
func TestWindowEdges(t *testing.T) {
	for text, next := range map[string]time.Duration{ // when the second unit is admitted
		"fixed-window 1/s":            1000 * time.Millisecond,
		"sliding-window 1/s":          2000 * time.Millisecond,
		"sliding-window 1/s cells 10": 2000 * time.Millisecond,
		"sliding-log 1/s":             1999 * time.Millisecond,
		"strict 1/s":                  1999*time.Millisecond + 1,
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, fixed := made(text), text == "fixed-window 1/s"
				began := time.Now()
				time.Sleep(999 * time.Millisecond)
				require.True(t, l.Allow("k", 1))
				time.Sleep(2 * time.Millisecond)
				require.Equal(t, fixed, l.Allow("k", 1), "at 1001 ms")
				time.Sleep(time.Until(began.Add(next - 1)))
				if !fixed {
					require.False(t, l.Allow("k", 1), "a nanosecond early")
					time.Sleep(time.Nanosecond)
					require.True(t, l.Allow("k", 1))
				}
			})
		})
	}
}

// TestFixedWindowAlignment: edges stand where the options put them.
func TestFixedWindowAlignment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	midnight := time.Date(2000, 6, 1, 0, 0, 0, 0, berlin)
	for name, c := range map[string]struct {
		rate algo.Rate
		opts []algo.Option
		edge time.Duration // from the making
	}{
		"plain":          {algo.PerMinute(3), nil, time.Minute},
		"offset":         {algo.PerMinute(3), []algo.Option{algo.Offset(17 * time.Second)}, 17 * time.Second},
		"long offset":    {algo.PerMinute(3), []algo.Option{algo.Offset(137 * time.Second)}, 17 * time.Second},
		"whole offset":   {algo.PerMinute(3), []algo.Option{algo.Offset(time.Hour)}, time.Minute},
		"future":         {algo.PerDay(3), []algo.Option{algo.AlignedTo(midnight)}, 22 * time.Hour},
		"past":           {algo.PerDay(3), []algo.Option{algo.AlignedTo(midnight.AddDate(-20, 0, 0))}, 22 * time.Hour},
		"ancient":        {algo.PerHour(3), []algo.Option{algo.AlignedTo(time.Date(1720, 1, 1, 0, 30, 0, 0, time.UTC))}, 30 * time.Minute},
		"aligned offset": {algo.PerHour(3), []algo.Option{algo.AlignedTo(time.Unix(0, 0)), algo.Offset(time.Minute)}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it begins at midnight UTC
				l := algo.Must(algo.NewFixedWindow(c.rate, c.opts...))
				for range 3 {
					require.EqualValues(t, 3, spendAll(l, "k"))
					require.Equal(t, c.edge, acquire(t, l, "k", 0).ResetAfter)
					time.Sleep(c.edge - 1)
					require.False(t, l.Allow("k", 1))
					time.Sleep(time.Nanosecond)
					c.edge = c.rate.Period
				}
			})
		})
	}
}

// TestOffsetIsModuloThePeriod: whole periods do not count, beside AlignedTo
// neither.
func TestOffsetIsModuloThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const day = 24 * time.Hour
		week := algo.Per(5, 7*day)
		for _, opts := range [][]algo.Option{nil, {algo.AlignedTo(time.Now().Add(time.Hour))}} {
			near := algo.Must(algo.NewFixedWindow(week, append(opts, algo.Offset(day))...))
			far := algo.Must(algo.NewFixedWindow(week, append(opts, algo.Offset(400*day))...)) // 57 weeks and a day
			require.Equal(t, acquire(t, near, "", 1).Decision, acquire(t, far, "", 1).Decision)
		}
	})
}

// TestAlignedToIgnoresDaylightSaving: a window is a length of time. In the
// summer the edge of a winter midnight is at one o'clock.
func TestAlignedToIgnoresDaylightSaving(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewFixedWindow(algo.PerDay(1), algo.AlignedTo(time.Date(2000, 1, 1, 0, 0, 0, 0, berlin))))
		time.Sleep(time.Until(time.Date(2000, 7, 1, 12, 0, 0, 0, berlin)))
		require.True(t, l.Allow("k", 1))
		reset := time.Now().Add(acquire(t, l, "k", 0).ResetAfter)
		require.Equal(t, 1, reset.In(berlin).Hour())
	})
}

// TestSpread: every key has whole windows of its own, their edges are spread,
// and the empty key keeps the limiter's.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewFixedWindow(algo.PerMinute(2), algo.Spread()))
		edges := map[time.Duration]bool{}
		for i := range 500 {
			key := fmt.Sprint(i)
			require.EqualValues(t, 2, spendAll(l, key))
			reset := acquire(t, l, key, 0).ResetAfter
			require.Positive(t, reset)
			require.LessOrEqual(t, reset, time.Minute)
			edges[reset] = true
		}
		require.Greater(t, len(edges), 250)
		require.Equal(t, 500, l.Stats().Live)
		require.True(t, l.Allow("", 1))
		require.Equal(t, time.Minute, acquire(t, l, "", 0).ResetAfter)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 250, l.Stats().Live, 100, "half of them have begun a new window")
		time.Sleep(30 * time.Second)
		require.Zero(t, l.Stats().Live)
		for i := range 500 {
			require.EqualValues(t, 2, spendAll(l, fmt.Sprint(i)))
		}
	})
}
