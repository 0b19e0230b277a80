package algo_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestPacerQueueIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(1), algo.MaxQueue(3)))
		for i := range 4 { // one starts, three wait
			require.Equal(t, time.Duration(i)*s, acquire(t, l, "k", 1).Delay)
		}
		denied := acquire(t, l, "k", 1)
		require.False(t, denied.Allowed)
		require.Equal(t, s, denied.RetryAfter)
		time.Sleep(s - 1)
		require.Equal(t, time.Duration(1), acquire(t, l, "k", 1).RetryAfter)
		time.Sleep(time.Nanosecond)
		require.Equal(t, 3*s, acquire(t, l, "k", 1).Delay)
		require.False(t, acquire(t, l, "k", 1).Allowed)
		require.Equal(t, algo.Never, acquire(t, l, "k", 5).Reason)
	})
}

func TestPacerQueueDefaults(t *testing.T) {
	waits := func(opts ...algo.Option) (n int64) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(10), opts...))
		for acquire(t, l, "", 1).Allowed {
			n++
		}
		return n - 1
	}
	synctest.Test(t, func(t *testing.T) {
		require.EqualValues(t, 10, waits(), "one period")
		require.EqualValues(t, 25, waits(algo.MaxQueue(25)))
		require.EqualValues(t, 30, waits(algo.MaxWait(3*s)))
		require.EqualValues(t, 25, waits(algo.MaxWait(3*s), algo.MaxQueue(25)))
		require.EqualValues(t, 30, waits(algo.MaxWait(3*s), algo.MaxQueue(math.MaxInt64)))
		require.EqualValues(t, 12, waits(algo.Slack(2)), "three start at once")
		require.EqualValues(t, 0, waits(algo.MaxWait(0)))

		l := algo.Must(algo.NewPacer(algo.PerSecond(10)))
		require.NoError(t, l.SetRate(algo.Every(time.Minute)))
		require.True(t, acquire(t, l, "", 1).Allowed)
		require.Equal(t, time.Minute, acquire(t, l, "", 1).Delay, "the line follows the period")
		require.Equal(t, time.Minute, acquire(t, l, "", 1).RetryAfter)
	})
}

// Departures of many callers are the emission interval apart.
func TestPacerDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewPacer(algo.PerSecond(4), algo.MaxQueue(50)))
		began := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		var group sync.WaitGroup
		for i := range 30 {
			group.Go(func() {
				time.Sleep(time.Duration(i*i) * time.Millisecond)
				_, err := algo.Wait(ctx, l, "k", 1)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Since(began))
			})
		}
		group.Wait()
		for i := range starts[1:] {
			require.GreaterOrEqual(t, starts[i+1]-starts[i], 250*time.Millisecond)
		}
		require.Equal(t, 29*250*time.Millisecond, starts[29])
	})
}

// tryAcquire(n, timeout): callers whose turn comes within the timeout wait and
// are served in order, the others are denied at once.
func TestSeveralCallersWithinTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newSmoothBursty(algo.PerSecond(4), algo.MaxWait(s)))
		began := time.Now()
		var mu sync.Mutex
		served := map[time.Duration]int{}
		denied := 0
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				lease, err := l.Acquire(ctx, "k", 1)
				require.NoError(t, err)
				require.NoError(t, algo.Sleep(ctx, lease.Delay))
				mu.Lock()
				defer mu.Unlock()
				if !lease.Allowed {
					denied++
					require.Zero(t, time.Since(began))
					return
				}
				served[time.Since(began)]++
			})
		}
		group.Wait()
		ms := time.Millisecond
		require.Equal(t, map[time.Duration]int{0: 1, 250 * ms: 1, 500 * ms: 1, 750 * ms: 1, 1000 * ms: 1}, served)
		require.Equal(t, 5, denied)
	})
}

// A hundred waits that are canceled, in whatever order, leave the next caller
// as if they had never come.
func TestCanceledWaitsOfShapes(t *testing.T) {
	forever := algo.MaxWait(algo.Forever)
	for name, make := range map[string]func() algo.Limiter{
		"pacer":         func() algo.Limiter { return algo.Must(algo.NewPacer(algo.PerSecond(1), algo.MaxQueue(100))) },
		"nginx":         func() algo.Limiter { return algo.Must(newNginx(algo.PerSecond(1), algo.Burst(100))) },
		"smooth bursty": func() algo.Limiter { return algo.Must(newSmoothBursty(algo.PerSecond(1), forever)) },
		"warming up":    func() algo.Limiter { return algo.Must(newSmoothWarmingUp(algo.PerSecond(1), 1, forever)) },
	} {
		for order, at := range map[string]func(i int) int{
			"first to last": func(i int) int { return i },
			"last to first": func(i int) int { return 99 - i },
			"shuffled":      func(i int) int { return i * 37 % 100 },
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := make()
					require.Zero(t, acquire(t, l, "", 1).Delay)
					var waits [100]algo.Lease
					for i := range waits {
						waits[i] = acquire(t, l, "", 1)
						require.InDelta(t, time.Duration(i+1)*s, waits[i].Delay, 2)
					}
					time.Sleep(s / 2)
					for i := range waits {
						waits[at(i)].Release(algo.Canceled)
					}
					require.InDelta(t, s/2, acquire(t, l, "", 1).Delay, 2)
				})
			})
		}
	}
}

func TestNginxSetBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newNginx(algo.PerSecond(2), algo.Burst(5), algo.DelayAfter(3)))
		require.NoError(t, l.SetBurst(1))
		require.True(t, l.Allow("", 2), "the delay parameter is above the burst: nothing is delayed")
		require.False(t, acquire(t, l, "", 1).Allowed)
		require.NoError(t, l.SetBurst(9))
		require.True(t, l.Allow("", 2))
		require.Equal(t, s/2, acquire(t, l, "", 1).Delay)
		require.NoError(t, l.SetRate(algo.PerSecond(4)))
		require.ErrorContains(t, l.SetBurst(-1), "nginx: burst is -1")
	})
}

// Guava's setRate: debt stays, saved permits scale.
func TestSmoothBurstySetRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newSmoothBursty(algo.PerSecond(10), algo.MaxWait(algo.Forever)))
		require.Equal(t, int64(11), acquire(t, l, "", 0).Limit)
		time.Sleep(s / 2)
		require.Equal(t, int64(6), acquire(t, l, "", 0).Remaining, "five saved")
		require.NoError(t, l.SetRate(algo.PerSecond(20)))
		require.Equal(t, int64(11), acquire(t, l, "", 0).Remaining, "ten saved")
		require.Equal(t, int64(21), acquire(t, l, "", 0).Limit)

		acquire(t, l, "", 50) // ten saved, forty are two seconds
		require.NoError(t, l.SetRate(algo.PerSecond(1)))
		require.Equal(t, 2*s, acquire(t, l, "", 1).Delay)
		require.NoError(t, l.SetRate(algo.PerSecond(100)))
		require.Equal(t, 3*s, acquire(t, l, "", 1).Delay)
		require.Error(t, l.SetRate(algo.PerSecond(0)))
	})
}

func TestSmoothBurstySaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(newSmoothBursty(algo.PerSecond(2), algo.Burst(6)))
		for _, key := range []string{"", "k"} {
			require.Equal(t, int64(1), acquire(t, l, key, 0).Remaining, "nothing is saved at first")
		}
		time.Sleep(time.Minute)
		for _, key := range []string{"", "k", "new"} {
			require.Equal(t, int64(7), acquire(t, l, key, 0).Remaining)
			require.True(t, l.Allow(key, 6))
			require.True(t, l.Allow(key, 1), "no debt yet")
			require.False(t, l.Allow(key, 1))
			require.Equal(t, s/2, acquire(t, l, key, 100).RetryAfter)
		}
		require.NoError(t, l.SetBurst(0))
		time.Sleep(time.Hour)
		require.True(t, l.Allow("", 1))
		require.False(t, l.Allow("", 1))
		require.Equal(t, algo.Never, acquire(t, l, "", math.MaxInt64).Reason)
	})
}
