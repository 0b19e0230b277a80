package algo_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

var ctx = context.Background()

// TestNewTokenBucketErrors: a bad option has a message that names the field and the value.
// TestLimitErrors has those of every algorithm.
func TestNewTokenBucketErrors(t *testing.T) {
	for _, c := range []struct {
		rate algo.Rate
		opts []algo.Option
		want string
	}{
		{algo.PerSecond(1), []algo.Option{algo.Burst(0)}, "burst is 0, want 1 or more"},
		{algo.PerSecond(1), []algo.Option{algo.Burst(-1)}, "burst is -1"},
		{algo.PerDay(1), []algo.Option{algo.Burst(366)}, "burst is 366: at 1/day it takes longer than 8760h0m0s to fill"},
		{algo.PerSecond(1), []algo.Option{algo.Burst(math.MaxInt64)}, "burst is 9223372036854775807"},
		{algo.PerSecond(1), []algo.Option{algo.MaxWait(-1)}, "max wait is -1ns, want 0 or more"},
	} {
		l, err := algo.NewTokenBucket(c.rate, c.opts...)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "algo: token bucket: "), err.Error())
		require.Nil(t, l)
		require.Panics(t, func() { algo.Must(algo.NewTokenBucket(c.rate, c.opts...)) })
	}
}

// TestDefaultBurstOfAnyRate: a rate of which no whole number of ticks makes up
// the period has a burst that takes a little more than the period to fill.
func TestDefaultBurstOfAnyRate(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, n := range []int64{1, 7, 11, 1e6 + 3, 1e12 + 39, int64(year)/2 + 1, int64(year) - 1, int64(year)} {
		for _, name := range cases.Algorithms() {
			if name == "sliding-log" || name == "strict" { // an instant for each unit; a period below a year
				continue
			}
			l, err := algo.Spec{Algorithm: name, Rate: algo.Per(n, year)}.New()
			require.NoError(t, err, "%s: %d", name, n)
			require.True(t, must(t, l, "k", 1).Allowed, "%s: %d", name, n)
		}
		for _, opt := range []algo.Option{algo.MaxWait(algo.Forever), algo.Burst(n), algo.Burst(1)} {
			require.True(t, must(t, bucket(algo.Per(n, year), opt), "k", 1).Allowed, "%v: %d", opt, n)
		}
		changed := bucket(algo.PerSecond(1))
		require.NoError(t, changed.SetRate(algo.Per(n, year)))
		require.True(t, changed.Allow("k", 1))
		b := bucket(algo.Per(n, year))
		require.Equal(t, n, peek(t, b, "k").Limit)
		require.True(t, must(t, b, "k", n).Allowed, n)
		require.Equal(t, algo.Never, must(t, b, "k", n+1).Reason, n)
		lease := must(t, b, "j", n)
		lease.Settle(2 * n) // as much again is debt
		require.False(t, b.Allow("j", 1))
		lease.Release(algo.Canceled)
		_, err := algo.NewTokenBucket(algo.Per(n, year), algo.Burst(n+1))
		require.ErrorContains(t, err, "takes longer than 8760h0m0s to fill")
	}
}

// TestSetRateKeepsDebtAsTime: a changed limit refills nothing, and cuts debt
// that the new limit could not have charged.
func TestSetRateKeepsDebtAsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
		for range 10 {
			require.True(t, l.Allow("k", 1))
		}
		require.NoError(t, l.SetRate(algo.PerSecond(20))) // the burst follows: 20
		d := acquire(t, l, "k", 0).Decision
		require.EqualValues(t, 20, d.Limit)
		require.EqualValues(t, 0, d.Remaining, "1 s of debt is 20 units now")
		require.Equal(t, time.Second, d.ResetAfter)

		require.Error(t, l.SetRate(algo.PerSecond(0)))
		require.Error(t, l.SetBurst(0))
		require.EqualValues(t, 20, acquire(t, l, "k", 0).Limit, "a refused change changes nothing")
	})
}

// TestSetRateHealsOldDebt: a key with a debt of a day under the old limit has
// a debt of at most two bursts under the new one, and is not locked out.
func TestSetRateHealsOldDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerDay(24), algo.Burst(24)))
		require.True(t, acquire(t, l, "k", 24).Allowed)
		require.NoError(t, l.SetRate(algo.PerSecond(100)))
		require.NoError(t, l.SetBurst(100))
		d := acquire(t, l, "k", 1).Decision
		require.False(t, d.Allowed, "no fresh burst either")
		require.LessOrEqual(t, d.RetryAfter, 2*time.Second)
		time.Sleep(d.RetryAfter)
		require.True(t, l.Allow("k", 1))
	})
}

// TestSetBurstDown: no more than the new burst is left at once.
func TestSetBurstDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(100)))
		require.True(t, l.Allow("", 1))
		require.NoError(t, l.SetBurst(5))
		got := 0
		for l.Allow("", 1) {
			got++
		}
		require.Equal(t, 4, got)
	})
}

// TestSettle: an estimate is corrected both ways.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(100)))
		lease := acquire(t, l, "k", 50)
		lease.Settle(20)
		require.EqualValues(t, 80, remaining(t, l))
		lease.Settle(30)
		require.EqualValues(t, 70, remaining(t, l))
		lease.Settle(-1)
		require.EqualValues(t, 70, remaining(t, l), "a negative cost is none")
		lease.Settle(130)
		d := acquire(t, l, "k", 1).Decision
		require.False(t, d.Allowed)
		require.Equal(t, 31*time.Second, d.RetryAfter, "30 of debt, and one unit")
		lease.Release(algo.Canceled)
		require.EqualValues(t, 100, remaining(t, l), "canceling gives all of it back")
	})
}

// TestSettleIntoDebtIsBounded: an absurd correction costs at most two bursts.
func TestSettleIntoDebtIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
		lease := acquire(t, l, "k", 1)
		lease.Settle(math.MaxInt64)
		d := acquire(t, l, "k", 1).Decision
		require.False(t, d.Allowed)
		require.Equal(t, 1100*time.Millisecond, d.RetryAfter)
		lease.Release(algo.Canceled)
		require.LessOrEqual(t, remaining(t, l), int64(10))
	})
}

// TestRefundOfAFastLimit: a request that fails after a fifth of a second gets
// its remaining weight back, although one unit takes only 10 ms.
func TestRefundOfAFastLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(100)))
		require.True(t, acquire(t, l, "k", 50).Allowed)
		lease := acquire(t, l, "k", 1)
		time.Sleep(200 * time.Millisecond)
		require.EqualValues(t, 69, remaining(t, l))
		lease.Release(algo.Canceled)
		require.EqualValues(t, 70, remaining(t, l))
	})
}

// TestLateRefundMintsNothing: the drained part of a charge is not refunded. A
// peer that refunded the whole cost until its expiry admitted 19 of 10.
func TestLateRefundMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(10)))
		lease := acquire(t, l, "k", 10)
		time.Sleep(9 * time.Second)
		require.True(t, acquire(t, l, "k", 9).Allowed)
		lease.Release(algo.Canceled)
		require.EqualValues(t, 1, remaining(t, l), "one second of the first ten was left")
	})
}

// TestCanceledWaits: a hundred waiters that give up, in whatever order, leave
// the next one as if they had never come. In x/time/rate a hundred of them
// blocked it for a hundred seconds.
func TestCanceledWaits(t *testing.T) {
	for name, order := range map[string]func(i int) int{
		"first to last": func(i int) int { return i },
		"last to first": func(i int) int { return 99 - i },
		"shuffled":      func(i int) int { return i * 37 % 100 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(1), algo.MaxWait(algo.Forever)))
				require.Zero(t, acquire(t, l, "", 1).Delay)
				var waits [100]algo.Lease
				for i := range waits {
					waits[i] = acquire(t, l, "", 1)
					require.Equal(t, time.Duration(i+1)*time.Second, waits[i].Delay)
				}
				time.Sleep(500 * time.Millisecond)
				for i := range waits {
					waits[order(i)].Release(algo.Canceled)
				}
				require.Equal(t, 500*time.Millisecond, acquire(t, l, "", 1).Delay)
			})
		})
	}
}

// TestWaitContextEnds: a waiter whose context ends gives its place back.
func TestWaitContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(1), algo.MaxWait(time.Minute)))
		require.True(t, l.Allow("", 1))
		short, cancel := context.WithCancel(ctx)
		time.AfterFunc(300*time.Millisecond, cancel)
		_, err := algo.Wait(short, l, "", 1)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 700*time.Millisecond, acquire(t, l, "", 1).Delay)

		_, err = algo.Wait(short, l, "", 1)
		require.ErrorIs(t, err, context.Canceled, "a context that has ended waits for nothing")
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
		lease := acquire(t, l, "k", 3)
		acquire(t, l, "other", 3)
		require.Equal(t, 2, l.Stats().Live)
		time.Sleep(time.Nanosecond)
		l.Reset("k")
		l.Reset("unknown")
		require.EqualValues(t, 3, remaining(t, l))
		require.True(t, acquire(t, l, "k", 2).Allowed)
		lease.Release(algo.Canceled)
		require.EqualValues(t, 1, remaining(t, l), "a refund after Reset mints nothing")
		require.False(t, l.Allow("other", 1))
	})
}

func acquire(t *testing.T, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err)
	return lease
}

func remaining(t *testing.T, l algo.Limiter) int64 {
	t.Helper()
	return acquire(t, l, "k", 0).Remaining
}

// TestRefundsCountOneAnother: a charge weighs less after the refund of an
// earlier one: units that drain in between are not refunded twice.
func TestRefundsCountOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(10)))
		first, second := acquire(t, l, "k", 5), acquire(t, l, "k", 5)
		first.Release(algo.Canceled)
		time.Sleep(6 * time.Second)
		third := acquire(t, l, "k", 5)
		require.True(t, third.Allowed)
		second.Release(algo.Canceled) // it has drained: the bucket was full a second ago
		require.EqualValues(t, 5, peek(t, l, "k").Remaining)
	})
}

// TestAllowChargesNothingItDenies: requests that would be delayed are denied,
// and the next unit is available no later for it.
func TestAllowChargesNothingItDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(1), algo.MaxWait(time.Minute)))
		require.True(t, l.Allow("k", 1))
		for range 10 {
			require.False(t, l.Allow("k", 1))
		}
		time.Sleep(time.Second)
		require.True(t, l.Allow("k", 1))
	})
}
