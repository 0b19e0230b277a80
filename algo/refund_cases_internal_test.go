package algo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCancelOfMoreThanABurst: a cost beyond the burst begins to drain before
// its work starts. The part that has drained by then is not refunded at the
// expense of later charges.
func TestCancelOfMoreThanABurst(t *testing.T) {
	for _, started := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := of("1/s burst 1 wait 4s")()
			lease := admit(t, l, "", 5)
			if started {
				time.Sleep(lease.Delay + 500*time.Millisecond)
			} else {
				time.Sleep(2 * time.Second)
			}
			admit(t, l, "", 2)
			lease.Release(Canceled)
			require.False(t, admitted(t, l, "", 4), "6 at one instant, where 5 fit")
			require.True(t, admitted(t, l, "", 3))
		})
	}
}

// admitted reports whether n units are charged, with whatever delay.
func admitted(t *testing.T, l Limiter, key string, n int64) bool {
	lease, err := l.Acquire(background, key, n)
	require.NoError(t, err)
	return lease.Allowed
}

// TestRefundsNeverRunOut: refunds whose sum is more than the clock can count
// change neither which charges are refundable nor which ones a reset has
// ended.
func TestRefundsNeverRunOut(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			l := of("1/day")()
			for range 5000 {
				lease := admit(t, l, key, 1)
				l.Reset(key)
				kept := admit(t, l, key, 1)
				lease.Release(Canceled)
				require.False(t, l.Allow(key, 1))
				kept.Release(Canceled)
			}
		})
	}
}

// TestSetRateThenCancelMintsNothing: after a debt was cut to the capacity of a
// faster limit, the charges in it are no longer refundable.
func TestSetRateThenCancelMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewTokenBucket(Every(100*time.Second), Burst(100)))
		var leases [100]Lease
		for i := range leases {
			leases[i] = admit(t, l, "", 1)
		}
		require.NoError(t, l.SetRate(PerSecond(1)))
		require.False(t, l.Allow("", 1))
		for i := range 5 {
			leases[i].Release(Canceled)
		}
		require.False(t, l.Allow("", 6), "95 of 100 were kept")
	})
}

// TestResetOfANewKeyThatFindsNoRoom: there is nothing to reset, and no waiting
// for room.
func TestResetOfANewKeyThatFindsNoRoom(t *testing.T) {
	for _, spec := range []string{"smooth-bursty 1/s burst 1000", "sliding-log 1000/h"} {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)(MaxKeys(1), DenyNew())
			for i := range 200 {
				l.Allow(fmt.Sprint(i), 1000)
			}
			l.Reset("new")
			require.False(t, admitted(t, l, "new", 1))
		})
	}
}

// waitingSpecs are limiters under a lock, 5 units an hour.
var waitingSpecs = []string{"sliding-window 5/h", "sliding-window 5/h cells 4", "sliding-log 5/h"}

// TestResetWhileWaiting: a charge made while a reset waits for the lock is
// reset too, and cannot be refunded in addition.
func TestResetWhileWaiting(t *testing.T) {
	for _, spec := range waitingSpecs {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)()
			var before Lease
			during(t, func() { before = admit(t, l, "", 5) })
			l.Reset("")
			require.True(t, before.Allowed)
			time.Sleep(time.Millisecond)
			require.True(t, l.Allow("", 5), spec)
			before.Release(Canceled)
			require.False(t, l.Allow("", 1), spec)
		})
	}
}

// TestSettleWhileWaiting: a charge made while a settlement waits that cuts the
// debt cannot be refunded either.
func TestSettleWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := of("sliding-window 5/h")()
		grown := admit(t, l, "", 1)
		var other Lease
		during(t, func() { other = admit(t, l, "", 4) })
		grown.Settle(1000)
		require.True(t, other.Allowed)
		owed := admit(t, l, "", 0)
		other.Release(Canceled)
		after := admit(t, l, "", 0)
		require.Equal(t, owed.NextAfter, after.NextAfter)
	})
}

// TestRefundWhileThePeriodChanges: a charge under the old period is not
// refunded from the count of the new one.
func TestRefundWhileThePeriodChanges(t *testing.T) {
	for _, spec := range []string{"fixed-window 5/s", "sliding-window 5/s", "sliding-window 5/s cells 4", "sliding-log 5/s"} {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)()
			before := admit(t, l, "", 5)
			time.Sleep(2 * time.Second)
			admit(t, l, "", 5)
			during(t, func() { before.Release(Canceled) })
			admit(t, l, "", 0)
			require.NoError(t, l.(interface{ SetRate(Rate) error }).SetRate(PerHour(5)))
			require.False(t, l.Allow("", 1), "%s: 5 of 5 were kept", spec)
			before.Release(Canceled)
			require.False(t, l.Allow("", 1), "%s: 5 of 5 were kept", spec)
		})
	}
}

// TestStateOfAnotherPeriodAtALateReading: a caller that meets a state of another
// period may have read the clock before the charges in it. It does not pass any
// sooner for that.
func TestStateOfAnotherPeriodAtALateReading(t *testing.T) {
	for _, spec := range []string{"fixed-window 3/4s", "sliding-window 3/4s", "sliding-window 3/4s cells 4", "sliding-log 3/4s"} {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)()
			old := l.clock().Now()
			time.Sleep(900 * time.Millisecond)
			admit(t, l, "", 3)
			require.NoError(t, l.(interface{ SetRate(Rate) error }).SetRate(Rate{3, 400 * time.Millisecond}))
			late := at(l, old, "", 1)
			require.False(t, late.Allowed, spec)
			time.Sleep(100 * time.Millisecond)
			require.False(t, l.Allow("", 3), "%s: 3 of 3 were spent 100 ms ago", spec)
		})
	}
}

// TestRefundKeepsTheTime: units that had passed at a charge are forgotten, also
// if the charge is refunded. A caller that has read the clock before, and
// decides after, does not find an empty window.
func TestRefundKeepsTheTime(t *testing.T) {
	for _, row := range crowdRows {
		if row.name == "warming up" { // it admits one at a time
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := row.make()
				var all []kept
				ask := func(late time.Duration) Lease {
					lease := at(l, l.clock().Now()-ticks(late), "", 1)
					if lease.Allowed {
						all = append(all, kept{at: lease.handle.At, n: 1, charged: 1, state: lease.handle.State})
					}
					return lease
				}
				time.Sleep(5500 * time.Millisecond)
				for range 4 {
					ask(0)
				}
				time.Sleep(2500 * time.Millisecond)
				later := ask(0)
				require.True(t, later.Allowed)
				later.Release(Canceled)
				all = all[:len(all)-1]
				for i := range 8 * 5 {
					ask(2500*time.Millisecond - time.Duration(i)*time.Second/8)
				}
				row.check(t, "", all)
			})
		})
	}
}

// TestSettleUnderASmallerQuota: units spent under a larger quota stay spent
// when more is charged than fits into a smaller one.
func TestSettleUnderASmallerQuota(t *testing.T) {
	for _, spec := range []string{"fixed-window 10/min", "sliding-log 10/min"} {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)()
			rate := l.(interface{ SetRate(Rate) error })
			lease := admit(t, l, "", 1)
			admit(t, l, "", 9)
			require.NoError(t, rate.SetRate(PerMinute(2)))
			lease.Settle(2)
			require.NoError(t, rate.SetRate(PerMinute(10)))
			require.False(t, l.Allow("", 1), "%s: 10 of 10 were kept", spec)
			time.Sleep(2 * time.Minute)
			require.True(t, l.Allow("", 10), spec)
		})
	}
}
