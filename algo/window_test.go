package algo_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cases"
)

// window is what all windows have.
type window interface {
	algo.Limiter
	algo.Describer
	Allow(key string, n int64) bool
	SetRate(algo.Rate) error
	Reset(key string)
	Len() int
	Overflowed() uint64
}

// windows makes one of each kind.
var windows = map[string]func(r algo.Rate, opts ...algo.Option) (window, error){
	"fixed window": func(r algo.Rate, opts ...algo.Option) (window, error) {
		return orNil(algo.NewFixedWindow(r, opts...))
	},
	"sliding window": func(r algo.Rate, opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingWindow(r, opts...))
	},
	"sliding window of cells": func(r algo.Rate, opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingWindow(r, append(opts, algo.Cells(10))...))
	},
	"sliding log": func(r algo.Rate, opts ...algo.Option) (window, error) {
		return orNil(algo.NewSlidingLog(r, opts...))
	},
	"strict": func(r algo.Rate, opts ...algo.Option) (window, error) {
		return orNil(algo.NewStrict(r, opts...))
	},
}

func orNil[W window](w W, err error) (window, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// eachWindow runs check in a bubble for a limiter of each kind.
func eachWindow(t *testing.T, r algo.Rate, check func(t *testing.T, l window), opts ...algo.Option) {
	t.Helper()
	for name, make := range windows {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := make(r, opts...)
				require.NoError(t, err)
				check(t, l)
			})
		})
	}
}

// spendAll returns how many single units l admits at once.
func spendAll(l window, key string) (n int64) {
	for l.Allow(key, 1) {
		n++
	}
	return n
}

// TestWindowErrors: every bad input has a message that names the field and the
// value, and an option of another type is refused by name.
func TestWindowErrors(t *testing.T) {
	for name, make := range windows {
		for _, c := range []struct {
			rate algo.Rate
			opts []algo.Option
			want string
		}{
			{algo.PerSecond(0), nil, "rate: count is 0, want 1 or more"},
			{algo.PerSecond(-7), nil, "rate: count is -7"},
			{algo.Per(1, 0), nil, "rate: period is 0s"},
			{algo.Per(1, -1), nil, "rate: period is -1ns"},
			{algo.Per(1, math.MaxInt64), nil, "rate: period is 2562047h47m16.854775807s"},
			{algo.PerSecond(math.MaxInt64), nil, "faster than 1e9 per second"},
			{algo.PerSecond(1), []algo.Option{algo.MaxKeys(0)}, "max keys is 0, want 1 to 2147483647"},
			{algo.PerSecond(1), []algo.Option{algo.OnFull(7)}, "on full is 7"},
			{algo.PerSecond(1), []algo.Option{algo.MaxWait(time.Second)}, "does not take the option MaxWait"},
			{algo.PerSecond(1), []algo.Option{{}}, "the zero Option is not an option"},
		} {
			l, err := make(c.rate, c.opts...)
			require.ErrorContains(t, err, c.want, name)
			require.True(t, strings.HasPrefix(err.Error(), "algo: "+strings.TrimSuffix(name, " of cells")+": "), err.Error())
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
		"algo: fixed window: does not take the option Cells, only Offset":                      errOf(algo.NewFixedWindow(second, algo.Cells(3))),
		"algo: fixed window: does not take the option Burst":                                   errOf(algo.NewFixedWindow(second, algo.Burst(3))),
		"algo: sliding window: cells is 0, want 1 to 1024":                                     errOf(algo.NewSlidingWindow(second, algo.Cells(0))),
		"algo: sliding window: cells is -1, want 1 to 1024":                                    errOf(algo.NewSlidingWindow(second, algo.Cells(-1))),
		"algo: sliding window: cells is 1025, want 1 to 1024":                                  errOf(algo.NewSlidingWindow(second, algo.Cells(1025))),
		"algo: sliding window: cells is 9: more than the 8ns of the period have nanoseconds":   errOf(algo.NewSlidingWindow(algo.Per(1, 8), algo.Cells(9))),
		"algo: sliding window: does not take the option Spread, only Cells":                    errOf(algo.NewSlidingWindow(second, algo.Spread())),
		"algo: sliding log: rate: count is 65537, want 65536 at most":                          errOf(algo.NewSlidingLog(algo.PerHour(65537))),
		"algo: sliding log: does not take the option Offset":                                   errOf(algo.NewSlidingLog(second, algo.Offset(1))),
		"algo: strict: burst is 11, want 1 to the 10 of the rate":                              errOf(algo.NewStrict(second, algo.Burst(11))),
		"algo: strict: burst is 0, want 1 to the 10 of the rate":                               errOf(algo.NewStrict(second, algo.Burst(0))),
		"algo: strict: rate: period is 8760h0m0s, want less than 8760h0m0s":                    errOf(algo.NewStrict(algo.Per(4, 8760*time.Hour))),
	} {
		require.ErrorContains(t, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestWindowEdges: the classic failures at the edge of a window. The quota is
// 1 a second; the first unit is spent at 999 ms.
func TestWindowEdges(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (window, error)
		next time.Duration // when the second unit is admitted
	}{
		"fixed":        {func() (window, error) { return orNil(algo.NewFixedWindow(algo.PerSecond(1))) }, 1000 * time.Millisecond},
		"two counters": {func() (window, error) { return orNil(algo.NewSlidingWindow(algo.PerSecond(1))) }, 2000 * time.Millisecond},
		"cells":        {func() (window, error) { return orNil(algo.NewSlidingWindow(algo.PerSecond(1), algo.Cells(10))) }, 2000 * time.Millisecond},
		"log":          {func() (window, error) { return orNil(algo.NewSlidingLog(algo.PerSecond(1))) }, 1999 * time.Millisecond},
		"strict":       {func() (window, error) { return orNil(algo.NewStrict(algo.PerSecond(1))) }, 1999*time.Millisecond + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := c.make()
				require.NoError(t, err)
				made := time.Now()
				time.Sleep(999 * time.Millisecond)
				require.True(t, l.Allow("k", 1))
				time.Sleep(2 * time.Millisecond)
				require.Equal(t, name == "fixed", l.Allow("k", 1), "at 1001 ms")
				time.Sleep(time.Until(made.Add(c.next - 1)))
				if name != "fixed" {
					require.False(t, l.Allow("k", 1), "a nanosecond early")
					time.Sleep(1)
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
					time.Sleep(1)
					c.edge = c.rate.Period
				}
			})
		})
	}
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
		require.Equal(t, 500, l.Len())
		require.True(t, l.Allow("", 1))
		require.Equal(t, time.Minute, acquire(t, l, "", 0).ResetAfter)
		time.Sleep(30 * time.Second)
		require.InDelta(t, 250, l.Len(), 100, "half of them have begun a new window")
		time.Sleep(30 * time.Second)
		require.Zero(t, l.Len())
		for i := range 500 {
			require.EqualValues(t, 2, spendAll(l, fmt.Sprint(i)))
		}
	})
}

// TestWindowFull: DenyNew says when room may come, AllowNew does not limit,
// and Overflow limits all new keys of a stripe together.
func TestWindowFull(t *testing.T) {
	for _, p := range []algo.FullPolicy{algo.Overflow, algo.DenyNew, algo.AllowNew} {
		t.Run(p.String(), func(t *testing.T) {
			eachWindow(t, algo.PerMinute(4), func(t *testing.T, l window) {
				for i := range 500 {
					l.Allow(fmt.Sprint("fill", i), 2)
				}
				require.Positive(t, l.Overflowed())
				require.LessOrEqual(t, l.Len(), 16)
				var allowed int64
				for i := range 1000 {
					lease := acquire(t, l, fmt.Sprint("new", i), 1)
					if lease.Allowed {
						allowed++
						require.Equal(t, p == algo.AllowNew, lease.Source == algo.Off)
					} else {
						require.Equal(t, algo.Quota, lease.Reason)
						require.Positive(t, lease.RetryAfter)
					}
					lease.Settle(3)
					lease.Release(algo.Canceled)
				}
				switch p {
				case algo.DenyNew:
					require.Zero(t, allowed)
					time.Sleep(acquire(t, l, "new", 1).RetryAfter)
					require.True(t, l.Allow("new", 1))
				case algo.AllowNew:
					require.EqualValues(t, 1000, allowed)
				case algo.Overflow:
					time.Sleep(2*time.Minute + 1)
					require.True(t, l.Allow("new", 1))
				}
			}, algo.MaxKeys(8), algo.OnFull(p))
		})
	}
}

// TestWindowReset: a reset key starts afresh, others do not, and nothing that
// was admitted before is given back on top.
func TestWindowReset(t *testing.T) {
	eachWindow(t, algo.PerMinute(10), func(t *testing.T, l window) {
		for _, key := range []string{"", "k"} {
			quota := acquire(t, l, key, 0).Remaining
			lease := acquire(t, l, key, 1)
			spendAll(l, key)
			spendAll(l, "other")
			time.Sleep(1)
			l.Reset(key)
			time.Sleep(1)
			require.Equal(t, quota, spendAll(l, key))
			lease.Release(algo.Canceled)
			require.Zero(t, spendAll(l, key))
			require.Zero(t, spendAll(l, "other"))
		}
		l.Reset("never seen")
		l.Reset("k")
		time.Sleep(1)
		require.Equal(t, 1, l.Len())
	})
}

// TestWindowSettle: less is given back, more is charged at once, and an absurd
// correction costs a bounded time and cannot be turned into units.
func TestWindowSettle(t *testing.T) {
	eachWindow(t, algo.PerMinute(20), func(t *testing.T, l window) {
		lease := acquire(t, l, "k", 8)
		left := lease.Remaining
		lease.Settle(3)
		require.Equal(t, left+5, remaining(t, l))
		lease.Settle(5)
		require.Equal(t, left+3, remaining(t, l))
		lease.Settle(-4)
		require.Equal(t, left+3, remaining(t, l))
		lease.Release(algo.Canceled)
		require.Equal(t, left+8, remaining(t, l))

		others := left + 7
		require.True(t, l.Allow("k", others))
		mine := acquire(t, l, "k", 1)
		require.True(t, mine.Allowed)
		mine.Settle(math.MaxInt64)
		require.Zero(t, remaining(t, l))
		mine.Settle(1 << 40)
		mine.Release(algo.Canceled)
		require.LessOrEqual(t, spendAll(l, "k"), int64(1), "of the others' units")
		d := acquire(t, l, "k", 1).Decision
		require.LessOrEqual(t, d.RetryAfter, 3*time.Minute)
		time.Sleep(d.RetryAfter)
		require.True(t, l.Allow("k", 1))
	})
}

// The same failure in a token bucket: the cancellation of what the ceiling cut
// off gave back what others had spent.
func TestSettleBeyondCeilingMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerMinute(10)))
		require.True(t, l.Allow("k", 9))
		lease := acquire(t, l, "k", 1)
		lease.Settle(math.MaxInt64)
		lease.Release(algo.Canceled)
		require.LessOrEqual(t, remaining(t, l), int64(1))
	})
}

// TestWindowLateRefund: what has passed is not given back.
func TestWindowLateRefund(t *testing.T) {
	eachWindow(t, algo.PerMinute(10), func(t *testing.T, l window) {
		lease := acquire(t, l, "k", 5)
		require.True(t, lease.Allowed)
		time.Sleep(3 * time.Minute)
		spendAll(l, "k")
		lease.Settle(2)
		lease.Release(algo.Canceled)
		require.Zero(t, remaining(t, l))
	})
}

// TestWindowSetRate: what is spent stays spent; a refused change changes
// nothing; a change of the period locks nobody out.
func TestWindowSetRate(t *testing.T) {
	eachWindow(t, algo.PerDay(20), func(t *testing.T, l window) {
		full := spendAll(l, "k")
		lease := acquire(t, l, "other", 5)
		require.Error(t, l.SetRate(algo.PerDay(0)))
		require.Error(t, l.SetRate(algo.PerSecond(math.MaxInt64)))
		require.Zero(t, remaining(t, l))

		time.Sleep(time.Second)
		require.NoError(t, l.SetRate(algo.PerDay(10)))
		require.Zero(t, remaining(t, l), "of %d", full)
		require.NoError(t, l.SetRate(algo.PerMinute(10)))
		time.Sleep(1)
		require.Zero(t, remaining(t, l), "no fresh quota at once")
		d := acquire(t, l, "k", 1).Decision
		require.LessOrEqual(t, d.RetryAfter, 3*time.Minute)
		time.Sleep(d.RetryAfter)
		require.True(t, l.Allow("k", 1))
		lease.Release(algo.Canceled)

		require.NoError(t, l.SetRate(algo.PerHour(10)))
		desc, ok := algo.Describe(l)
		require.True(t, ok)
		require.LessOrEqual(t, desc.Quota, int64(10))
		time.Sleep(3 * time.Hour)
		require.Positive(t, spendAll(l, "k"))
		require.Positive(t, l.Len())
	})
}

// TestSlidingLogGrows: a larger quota gets a larger ring, a longer period wider
// instants, and nothing that was spent is lost.
func TestSlidingLogGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSlidingLog(algo.PerSecond(20)))
		time.Sleep(time.Hour)
		for range 20 {
			require.True(t, l.Allow("k", 1))
			time.Sleep(10 * time.Millisecond)
		}
		require.False(t, l.Allow("k", 1))
		require.NoError(t, l.SetRate(algo.PerSecond(100)))
		require.True(t, l.Allow("k", 80))
		require.NoError(t, l.SetRate(algo.PerHour(101)))
		require.EqualValues(t, 1, remaining(t, l))
		time.Sleep(time.Hour - 200*time.Millisecond)
		for i := range int64(19) {
			require.EqualValues(t, 1+i+1, remaining(t, l))
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, l.SetRate(algo.PerHour(5)))
		require.Zero(t, remaining(t, l))
	})
}

// TestWindowCrowd: 512 goroutines at once get no more than one caller would,
// with real time and a real clock.
func TestWindowCrowd(t *testing.T) {
	for name, make := range windows {
		for _, key := range []string{"", "k"} {
			l, err := make(algo.PerDay(1000))
			require.NoError(t, err)
			want := acquire(t, l, key, 0).Remaining
			var admitted atomic.Int64
			var group sync.WaitGroup
			for range 512 {
				group.Go(func() {
					for range 8 {
						if l.Allow(key, 1) {
							admitted.Add(1)
						}
					}
				})
			}
			group.Wait()
			require.Equal(t, want, admitted.Load(), "%s, key %q", name, key)
		}
	}
}

// TestWindowFlood is promise M1: keys that were never seen before take no
// memory beyond what stands beside the slots, and a known key keeps its own.
func TestWindowFlood(t *testing.T) {
	const maxKeys = 1 << 14
	floods := cases.Count(200_000, 10_000_000)
	for name, make := range windows {
		l, err := make(algo.PerDay(30), algo.MaxKeys(maxKeys))
		require.NoError(t, err)
		for range 10 {
			require.True(t, l.Allow("known", 1))
		}
		left := acquire(t, l, "known", 0).Remaining
		before := heap()
		var name20 [20]byte
		for i := range floods {
			l.Allow(string(fmt.Appendf(name20[:0], "flood-%d", i)), 1)
		}
		grown := int64(heap()) - int64(before)
		perSlot := int64(0)
		switch name {
		case "sliding window of cells":
			perSlot = 11 * 8
		case "sliding log":
			perSlot = 8 * 8
		}
		slots := int64(2*maxKeys + 257)
		require.LessOrEqual(t, grown, slots*(perSlot+16)*21/20, name)
		require.Equal(t, left, spendAll(l, "known"), name)
		require.Positive(t, l.Overflowed())
		t.Logf("M1: %s: %d keys over %d slots: heap +%d bytes, %d kept, %d overflowed",
			name, floods, 2*maxKeys, grown, l.Len(), l.Overflowed())
		runtime.KeepAlive(l)
	}
}
