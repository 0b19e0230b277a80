package algo

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
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
		rated
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

// TestWindowAdoptsAtAFreshReading: whoever meets a state of another period has
// perhaps read the clock before what weighs there was charged. It does not pass
// any sooner for that.
func TestWindowAdoptsAtAFreshReading(t *testing.T) {
	for name, l := range map[string]*SlidingWindow{
		"two counters": Must(NewSlidingWindow(Rate{3, 4 * time.Second})),
		"cells":        Must(NewSlidingWindow(Rate{3, 4 * time.Second}, Cells(4))),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l.cells.clock = startClock()
				old := l.cells.clock.now()
				time.Sleep(900 * time.Millisecond)
				admit(t, l, "", 3)
				require.NoError(t, l.SetRate(Rate{3, 400 * time.Millisecond}))
				require.False(t, l.allowAt(old, "", 1))
				time.Sleep(100 * time.Millisecond)
				require.False(t, l.Allow("", 3), "3 of 3 were spent 100 ms ago")
			})
		})
	}
}

// TestWindowRefundsAtChangingRates: as TestWindowRefundsMintNothing, while the
// quota or the period changes. What is not given back stays within the bound
// of the larger quota, in the shorter period.
func TestWindowRefundsAtChangingRates(t *testing.T) {
	for name, rates := range map[string][2]Rate{
		"quota":  {{2, time.Second}, {3, time.Second}},
		"period": {{3, time.Second}, {3, 2 * time.Second}},
	} {
		for kind, c := range fewSlots {
			if kind == "strict" || name == "period" && (kind == "fixed" || kind == "spread") {
				continue // a debt that is time has other bounds
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				interleaved(t)
				n := cases.Count(300, 5_000)
				for trial := range n {
					synctest.Test(t, func(t *testing.T) {
						l, clock := c.make()
						var group sync.WaitGroup
						group.Go(func() { alternate(l.(rated), rates, uint64(trial)) })
						all := correct(l, clock, []int64{0, 1, 2, 3}, uint64(trial))
						group.Wait()
						requireAnywhere(t, "", all, toTicks(time.Second), c.anywhere)
						if kind == "fixed" || kind == "spread" {
							requireInEach(t, all)
						}
					})
				}
				t.Logf("W2: %d crowds of 4 that charge, settle and cancel", n)
			})
		}
	}
}

// requireInEach looks at each second since a fixed window was made.
func requireInEach(t *testing.T, all []admission) {
	t.Helper()
	spent := map[int64]int64{}
	for _, a := range all {
		second := (a.at - toTicks(maxSpan)) / toTicks(time.Second)
		if a.at < toTicks(maxSpan) {
			second = -1 - (toTicks(maxSpan)-1-a.at)/toTicks(time.Second)
		}
		spent[second] += a.n
		require.LessOrEqual(t, spent[second], int64(3), "%v", all)
	}
}

// rated is a limiter whose rate can change.
type rated interface{ SetRate(r Rate) error }

// alternate changes the rate for some time.
func alternate(l rated, rates [2]Rate, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	for i := range 60 {
		_ = l.SetRate(rates[i%2])
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second / 2))))
	}
}
