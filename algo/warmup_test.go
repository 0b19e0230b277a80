package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// Without a warm-up it is a SmoothBursty; in Guava the division by zero limits
// nothing.
func TestNoWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := algo.MaxWait(3 * s)
		a := algo.Must(newSmoothWarmingUp(algo.PerSecond(5), 0, wait, algo.ColdFactor(7)))
		b := algo.Must(newSmoothBursty(algo.PerSecond(5), wait))
		for i := range int64(60) {
			require.Equal(t, acquire(t, b, "k", i%9).Decision, acquire(t, a, "k", i%9).Decision)
			time.Sleep(time.Duration(i%7) * s / 3)
		}
		require.NoError(t, a.SetRate(algo.PerSecond(1)))
		require.Equal(t, 1, a.Stats().Live)
		require.Equal(t, int64(2), algo.About(a).Quota)
	})
}

func TestWarmingUpSetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newSmoothWarmingUp(algo.PerSecond(2), 4*s, algo.MaxWait(algo.Forever)))
		require.Zero(t, acquire(t, l, "k", 4).Delay) // from cold to the threshold
		require.NoError(t, l.SetRate(algo.PerSecond(4)))
		require.Equal(t, 4*s, acquire(t, l, "k", 1).Delay, "the debt stays")
		require.Equal(t, 4*s+s/4, acquire(t, l, "k", 1).Delay, "and it is still half warm")
		require.Error(t, l.SetRate(algo.PerSecond(0)))
		d := algo.About(l)
		require.Equal(t, algo.Description{Rate: algo.PerSecond(4), Quota: 1, Window: s / 4}, d)
	})
}

// Guava's microseconds run 4 % fast at 80 000 a second.
func TestWarmingUpAccuracy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{3, 80_000, 600_000_000} {
			l := algo.Must(newSmoothWarmingUp(algo.PerSecond(rate), 1, algo.MaxWait(algo.Forever)))
			acquire(t, l, "", 3*rate)
			owed := acquire(t, l, "", 0).ResetAfter
			require.GreaterOrEqual(t, owed, 3*s-3, "never faster")
			require.Less(t, owed, 3*s+s/50)
		}
	})
}

func TestWarmingUpSettleAndReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newSmoothWarmingUp(algo.PerSecond(1), 1, algo.MaxWait(algo.Forever)))
		lease := acquire(t, l, "k", 10)
		lease.Settle(4)
		require.InDelta(t, 4*s, acquire(t, l, "k", 0).ResetAfter, 2)
		lease.Settle(7)
		require.InDelta(t, 7*s, acquire(t, l, "k", 0).ResetAfter, 2)
		require.Equal(t, 1, l.Stats().Live)
		l.Reset("k")
		require.Zero(t, acquire(t, l, "k", 0).ResetAfter)
		lease.Release(algo.Canceled)
		require.True(t, l.Allow("k", 3))
		require.False(t, l.Allow("k", 1))
		require.False(t, l.Allow("k", -1))
		_, err := l.Acquire(ctx, "k", -1)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, algo.Never, acquire(t, l, "k", 1<<31).Reason)
		require.Zero(t, l.Stats().Overflowed)
	})
}
