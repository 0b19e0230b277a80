package algo

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/interleave"
)

// TestWindowRefundsMintNothing: four goroutines charge, settle and cancel one
// key while time passes, and some read the clock long before they decide. What
// is not given back stays within the bound.
func TestWindowRefundsMintNothing(t *testing.T) {
	for name, c := range fewSlots {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(300, 10_000)
			for trial := range n {
				synctest.Test(t, func(t *testing.T) {
					l, clock := c.make()
					all := correct(l, clock, []int64{0, 1, 2, 3, 5, 1 << 40}, uint64(trial))
					requireAnywhere(t, "", all, toTicks(time.Second), c.anywhere)
					if name == "fixed" || name == "spread" {
						requireInEach(t, all)
					}
				})
			}
			t.Logf("W2: %d crowds of 4 that charge, settle and cancel", n)
		})
	}
}

// during runs do inside the next decision on a cell, after it has read the
// clock and before it has the lock.
func during(t *testing.T, do func()) {
	t.Cleanup(func() { interleave.Hook = nil })
	interleave.Hook = func() {
		interleave.Hook = nil
		time.Sleep(time.Millisecond)
		do()
	}
}

// TestWindowResetWhileWaiting: what was charged while a reset waited for the
// lock is forgiven, and cannot be given back on top of that.
func TestWindowResetWhileWaiting(t *testing.T) {
	for name, make := range map[string]func() slidingLimiter{
		"two counters": func() slidingLimiter { return Must(NewSlidingWindow(PerHour(5))) },
		"cells":        func() slidingLimiter { return Must(NewSlidingWindow(PerHour(5), Cells(4))) },
		"log":          func() slidingLimiter { return Must(NewSlidingLog(PerHour(5))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make()
				var before Lease
				during(t, func() { before, _ = l.Acquire(background, "", 5) })
				l.Reset("")
				require.True(t, before.Allowed)
				time.Sleep(time.Millisecond)
				require.True(t, l.Allow("", 5))
				before.Release(Canceled)
				require.False(t, l.Allow("", 1))
			})
		})
	}
}

// TestWindowSettleWhileWaiting: neither can what was charged while a settlement
// waited that cuts something off.
func TestWindowSettleWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewSlidingWindow(PerHour(5)))
		grown, _ := l.Acquire(background, "", 1)
		var other Lease
		during(t, func() { other, _ = l.Acquire(background, "", 4) })
		grown.Settle(1000)
		require.True(t, other.Allowed)
		owed, _ := l.Acquire(background, "", 0)
		other.Release(Canceled)
		after, _ := l.Acquire(background, "", 0)
		require.Equal(t, owed.NextAfter, after.NextAfter)
	})
}

// slidingLimiter is what the limiters over windowed have in common.
type slidingLimiter interface {
	Limiter
	Allow(key string, n int64) bool
	Reset(key string)
}

// correct returns what was admitted to the empty key and kept, where requests turn
// out to cost one of costs. A settlement that adds does not count as admitted; one
// that takes away leaves the rest.
func correct(l atReading, c clock, costs []int64, seed uint64) (all []admission) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 30 {
				n := 1 + rnd.Int64N(2)
				late := rnd.Int64N(3) / 2 * rnd.Int64N(toTicks(3*time.Second))
				var lease Lease
				l.acquireAt(&lease, c.now()-late, "", n)
				if lease.Allowed {
					at := lease.handle.At
					kept := n
					for range rnd.IntN(4) {
						time.Sleep(time.Duration(rnd.Int64N(2) * rnd.Int64N(int64(time.Second/2))))
						actual := costs[rnd.IntN(len(costs))]
						lease.Settle(actual)
						kept = min(kept, actual)
					}
					if rnd.IntN(3) == 0 {
						lease.Release(Canceled)
						kept = 0
					}
					mu.Lock()
					all = append(all, admission{at, kept})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(time.Second))))
			}
		})
	}
	group.Wait()
	return all
}

// TestWindowRefundKeepsTheTime: what had passed when somebody charged is
// forgotten, also if he gives it back. Who has read the clock before, and
// decides after, does not find an empty window.
func TestWindowRefundKeepsTheTime(t *testing.T) {
	for name, c := range fewSlots {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, clock := c.make()
				var all []admission
				ask := func(late time.Duration) (lease Lease) {
					l.acquireAt(&lease, clock.now()-toTicks(late), "", 1)
					if lease.Allowed {
						all = append(all, admission{lease.handle.At, 1})
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
				requireAnywhere(t, "", all, toTicks(time.Second), c.anywhere)
			})
		})
	}
}
