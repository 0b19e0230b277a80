package algo_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestTableFull: DenyNew says when room may come; without it new keys are admitted.
func TestTableFull(t *testing.T) {
	for policy, opts := range map[string][]algo.Option{"evict": nil, "deny new": {algo.DenyNew()}} {
		t.Run(policy, func(t *testing.T) {
			eachLimit(t, cases.Limits("4/min", atOnce), func(t *testing.T, l *algo.RateLimiter) {
				for i := range 500 {
					l.Allow(fmt.Sprint("fill", i), 2)
				}
				require.Positive(t, l.Stats().Overflowed)
				require.LessOrEqual(t, l.Stats().Live, 16)
				var allowed int64
				for i := range 1000 {
					lease := acquire(t, l, fmt.Sprint("new", i), 1)
					if lease.Allowed {
						allowed++
					} else {
						require.Equal(t, algo.Overload, lease.Reason)
						require.Positive(t, lease.RetryAfter)
					}
					lease.Settle(3)
					lease.Release(algo.Canceled)
				}
				if len(opts) == 0 {
					require.EqualValues(t, 1000, allowed)
					return
				}
				require.Zero(t, allowed)
				time.Sleep(acquire(t, l, "new", 1).RetryAfter)
				require.True(t, l.Allow("new", 1))
			}, append(opts, algo.MaxKeys(8))...)
		})
	}
}

// TestEachReset: a reset key starts afresh, others do not, and nothing that
// was admitted before is given back on top.
func TestEachReset(t *testing.T) {
	eachLimit(t, cases.Limits("10/min", atOnce), func(t *testing.T, l *algo.RateLimiter) {
		for _, key := range []string{"", "k"} {
			quota := acquire(t, l, key, 0).Remaining
			lease := acquire(t, l, key, 1)
			spendAll(l, key)
			spendAll(l, "other")
			time.Sleep(time.Nanosecond)
			l.Reset(key)
			time.Sleep(time.Nanosecond)
			require.Equal(t, quota, spendAll(l, key))
			lease.Release(algo.Canceled)
			require.Zero(t, spendAll(l, key))
			require.Zero(t, spendAll(l, "other"))
		}
		l.Reset("never seen")
		l.Reset("k")
		time.Sleep(time.Nanosecond)
		require.Equal(t, 1, l.Stats().Live)
	})
}

// TestEachSettle: less is given back, more is charged at once, and an absurd
// correction costs a bounded time and cannot be turned into units.
func TestEachSettle(t *testing.T) {
	eachLimit(t, cases.Limits("20/min", besides(cases.Without{"zone": "its window is a day"})), func(t *testing.T, l *algo.RateLimiter) {
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

// TestEachLateRefund: units of a past window are not refunded.
func TestEachLateRefund(t *testing.T) {
	eachLimit(t, cases.Limits("10/min", besides(cases.Without{"zone": "its window is a day"})), func(t *testing.T, l *algo.RateLimiter) {
		lease := acquire(t, l, "k", 5)
		require.True(t, lease.Allowed)
		time.Sleep(3 * time.Minute)
		spendAll(l, "k")
		lease.Settle(2)
		lease.Release(algo.Canceled)
		require.Zero(t, remaining(t, l))
	})
}

// TestEachSetRate: spent units stay spent; a rejected change has no effect;
// a change of the period locks no key out.
func TestEachSetRate(t *testing.T) {
	eachLimit(t, append(cases.Limits("20/day", besides(cases.Without{
		"zone": "a day is its shortest window", "burst": "what was given does not follow the rate", "slack": "what was given does not follow the rate",
	})), "strict 20/day"), func(t *testing.T, l *algo.RateLimiter) {
		full := spendAll(l, "k")
		lease := acquire(t, l, "other", 5)
		require.Error(t, l.SetRate(algo.PerDay(0)))
		require.Error(t, l.SetRate(algo.PerSecond(math.MaxInt64)))
		require.Zero(t, remaining(t, l))

		time.Sleep(time.Second)
		require.NoError(t, l.SetRate(algo.PerDay(10)))
		require.Zero(t, remaining(t, l), "of %d", full)
		require.NoError(t, l.SetRate(algo.PerMinute(10)))
		time.Sleep(time.Nanosecond)
		require.Zero(t, remaining(t, l), "no fresh quota at once")
		d := acquire(t, l, "k", 1).Decision
		require.LessOrEqual(t, d.RetryAfter, 3*time.Minute)
		time.Sleep(d.RetryAfter)
		require.True(t, l.Allow("k", 1))
		lease.Release(algo.Canceled)

		require.NoError(t, l.SetRate(algo.PerHour(10)))
		desc := algo.About(l)
		require.LessOrEqual(t, desc.Quota, int64(10))
		time.Sleep(3 * time.Hour)
		require.Positive(t, spendAll(l, "k"))
		require.Positive(t, l.Stats().Live)
	})
}

// TestSettleAcrossSetRate: a correction that was charged under a larger quota is
// not given back at the share of the smaller one.
func TestSettleAcrossSetRate(t *testing.T) {
	eachLimit(t, append(cases.Limits("20/min", besides(cases.Without{
		"zone": "a day is its shortest window", "burst": "what was given does not follow the rate", "slack": "what was given does not follow the rate",
	})), "strict 20/min"), func(t *testing.T, l *algo.RateLimiter) {
		half := acquire(t, l, "k", 0).Remaining / 2
		mine := acquire(t, l, "k", 1)
		require.True(t, l.Allow("k", half))
		time.Sleep(time.Nanosecond)
		require.NoError(t, l.SetRate(algo.PerMinute(80)))
		mine.Settle(1 + 2*half)
		require.NoError(t, l.SetRate(algo.PerMinute(20)))
		mine.Release(algo.Canceled)
		require.LessOrEqual(t, remaining(t, l), half+half%2+1, "the others' half is spent")
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

// TestSlidingLogWidensEmpty: a ring that was used and is empty takes a longer
// period from its beginning.
func TestSlidingLogWidensEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSlidingLog(algo.PerSecond(8)))
		require.True(t, l.Allow("k", 6))
		time.Sleep(2 * time.Second)
		lease := acquire(t, l, "k", 1)
		lease.Release(algo.Canceled)
		require.NoError(t, l.SetRate(algo.PerMinute(8)))
		for range 8 {
			require.True(t, l.Allow("k", 1))
		}
		require.False(t, l.Allow("k", 1))
	})
}

// TestEachCrowd: 512 goroutines at once get no more than one caller would,
// with real time and a real clock.
func TestEachCrowd(t *testing.T) {
	for _, name := range cases.Limits("300/day", atOnce) {
		for _, key := range []string{"", "k"} {
			l := made(name)
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

// TestEachFlood is promise M1: unseen keys take no memory beyond the table,
// and a known key keeps its state.
func TestEachFlood(t *testing.T) {
	maxKeys := max(cases.Count(1<<14, 1<<14), 1<<12)
	floods := max(cases.Count(200_000, 10_000_000), 4*maxKeys)
	for _, name := range cases.Limits("30/day", atOnce) {
		l := made(name, algo.MaxKeys(maxKeys))
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
		perSlot := int64(16 + 64)
		switch name {
		case "sliding-window 30/day cells 4":
			perSlot += 5 * 8
		case "sliding-log 30/day":
			perSlot += 8 * 8
		}
		slots := 2*4*int64(maxKeys)/3 + 592
		require.LessOrEqual(t, grown, slots*perSlot*21/20, name)
		require.Equal(t, left, spendAll(l, "known"), name)
		require.Positive(t, l.Stats().Overflowed)
		t.Logf("M1: %s: %d keys with room for %d: heap +%d bytes, %d kept, %d overflowed",
			name, floods, maxKeys, grown, l.Stats().Live, l.Stats().Overflowed)
		runtime.KeepAlive(l)
	}
}

// TestChurnOfKeysAllocatesNothing: the ring of a key that is forgotten serves
// the next one in its slot.
func TestChurnOfKeysAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSlidingLog(algo.Per(8, time.Millisecond), algo.MaxKeys(4)))
		keys := make([]string, 5000)
		for i := range keys {
			keys[i] = fmt.Sprint("user-", i)
		}
		next := 0
		churn := func() {
			l.Allow(keys[next%len(keys)], 8)
			time.Sleep(2 * time.Millisecond)
			next++
		}
		for range 2000 {
			churn()
		}
		require.Zero(t, testing.AllocsPerRun(2000, churn))
	})
}

// TestRefundAcrossAChangeOfThePeriod: the weight of a charge under another
// period is no longer known; a refund would return the units of other charges.
func TestRefundAcrossAChangeOfThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewSlidingWindow(algo.Per(10, time.Second)))
		first := acquire(t, l, "k", 5)
		time.Sleep(1500 * time.Millisecond)
		require.True(t, acquire(t, l, "k", 5).Allowed)
		time.Sleep(400 * time.Millisecond) // hardly anything of the first is left
		require.NoError(t, l.SetRate(algo.Per(10, 10*time.Second)))
		first.Release(algo.Canceled)
		require.LessOrEqual(t, peek(t, l, "k").Remaining, int64(5), "the second still weighs")
	})
}
