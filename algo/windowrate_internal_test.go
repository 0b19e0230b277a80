package algo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFixedSettleUnderAnotherRate: units that were given back, and are charged
// again at a smaller share of the window, are not given back at the larger one.
func TestFixedSettleUnderAnotherRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewFixedWindow(PerMinute(10)))
		lease := admit(t, l, "", 5)
		lease.Settle(0)
		time.Sleep(time.Second)
		require.NoError(t, l.SetRate(PerMinute(60)))
		lease.Settle(5)
		admit(t, l, "", 30)
		lease.Release(Canceled)
		require.False(t, l.Allow("", 31), "30 of 60 were kept")
	})
}

// TestLogSettleUnderASmallerQuota: what was spent under a larger quota stays
// spent when more is charged than fits into a smaller one.
func TestLogSettleUnderASmallerQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewSlidingLog(PerMinute(10)))
		lease := admit(t, l, "", 1)
		admit(t, l, "", 9)
		require.NoError(t, l.SetRate(PerMinute(2)))
		lease.Settle(2)
		require.NoError(t, l.SetRate(PerMinute(10)))
		require.False(t, l.Allow("", 1), "10 of 10 were kept")
		time.Sleep(time.Minute)
		require.True(t, l.Allow("", 10))
	})
}

// TestWindowRefundWhileThePeriodChanges: what was charged under the old period
// is not given back from what is counted under the new one, not even before it
// is known when it changed.
func TestWindowRefundWhileThePeriodChanges(t *testing.T) {
	type limiter interface {
		slidingLimiter
		SetRate(r Rate) error
	}
	for name, l := range map[string]func() limiter{
		"two counters": func() limiter { return Must(NewSlidingWindow(PerSecond(5))) },
		"cells":        func() limiter { return Must(NewSlidingWindow(PerSecond(5), Cells(4))) },
		"log":          func() limiter { return Must(NewSlidingLog(PerSecond(5))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := l()
				before := admit(t, l, "", 5)
				time.Sleep(2 * time.Second)
				admit(t, l, "", 5)
				during(t, func() { before.Release(Canceled) })
				require.NoError(t, l.SetRate(PerHour(5)))
				require.False(t, l.Allow("", 1), "5 of 5 were kept")
			})
		})
	}
}
