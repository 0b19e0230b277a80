package algo

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// admit is an admission.
func admit(t *testing.T, l Limiter, key string, n int64) Lease {
	t.Helper()
	lease, err := l.Acquire(background, key, n)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	return lease
}

// TestCancelOfMoreThanABurst: a cost beyond the burst begins to drain before
// its work starts. What has drained by then is not given back at the expense of
// those behind.
func TestCancelOfMoreThanABurst(t *testing.T) {
	for _, started := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewTokenBucket(PerSecond(1), Burst(1), MaxWait(4*time.Second)))
			lease := admit(t, l, "", 5)
			if started {
				time.Sleep(lease.Delay + 500*time.Millisecond)
			} else {
				time.Sleep(2 * time.Second)
			}
			admit(t, l, "", 2)
			lease.Release(Canceled)
			require.False(t, delayed(l, 4), "6 at one instant, where 5 fit")
			require.True(t, delayed(l, 3))
		})
	}
}

// delayed charges n with whatever delay.
func delayed(l Limiter, n int64) bool {
	lease, _ := l.Acquire(background, "", n)
	return lease.Allowed
}

// TestRefundsNeverRunOut: giving back more than the clock can count in sum
// changes nothing about what can be given back, and what a reset forgave.
func TestRefundsNeverRunOut(t *testing.T) {
	for _, key := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewTokenBucket(PerDay(1)))
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

// TestSetRateThenCancelMintsNothing: once a debt was cut to what a faster limit
// can hold, what it consisted of cannot be given back any more.
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
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewSmoothBursty(PerSecond(1), Burst(1000), MaxKeys(1), OnFull(DenyNew)))
		for i := range 200 {
			l.Allow(fmt.Sprint(i), 10_000)
		}
		l.Reset("new")
		lease, err := l.Acquire(background, "new", 1)
		require.NoError(t, err)
		require.False(t, lease.Allowed)
	})
}

// TestBucketRefundsMintNothing: four goroutines charge, settle and cancel a few
// keys that fight for slots, while time passes, and some read the clock long
// before they decide. What is not given back stays within the bound.
func TestBucketRefundsMintNothing(t *testing.T) {
	interleaved(t)
	n := cases.Count(300, 10_000)
	for trial := range n {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewTokenBucket(PerSecond(10), Burst(3), MaxKeys(2)))
			keys := 1 + trial%2*23
			for key, calls := range corrected(l, keys, uint64(trial)) {
				requireWithin(t, l.limit.Load(), calls, key)
			}
		})
	}
	t.Logf("W1: %d crowds of 4 that charge, settle and cancel", n)
}

// corrected returns what each key was admitted and has not given back.
func corrected(l *TokenBucket, keys int, seed uint64) map[string][]call {
	var mu sync.Mutex
	kept := map[string][]call{}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(most)))) }
			for range 40 {
				key := fmt.Sprint(rnd.IntN(keys))
				now := l.words.clock.now()
				pause(time.Second)
				lease := at(&l.bucket, now, key, 1+rnd.Int64N(3))
				if lease.Allowed {
					c := call{lease.handle.At, lease.handle.N}
					pause(time.Second / 2)
					if rnd.IntN(3) == 0 {
						c.n = min(c.n, rnd.Int64N(3))
						lease.Settle(c.n)
						pause(time.Second / 2)
					}
					if rnd.IntN(3) == 0 {
						c.n = 0
						lease.Release(Canceled)
					}
					mu.Lock()
					kept[key] = append(kept[key], c)
					mu.Unlock()
				}
				pause(300 * time.Millisecond)
			}
		})
	}
	group.Wait()
	return kept
}
