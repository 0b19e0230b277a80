package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// The well-known numbers of these algorithms, one table for each: run with -v
// to read them.

const s = time.Second

// waits acquires each cost in turn, sleeping out the delay before the next, as
// one thread calling Guava's acquire does.
func waits(t *testing.T, l algo.Limiter, costs ...int64) (delays []time.Duration) {
	for _, n := range costs {
		lease := acquire(t, l, "k", n)
		require.True(t, lease.Allowed)
		delays = append(delays, lease.Delay)
		t.Logf("  acquire(%d) waits %v", n, lease.Delay)
		time.Sleep(lease.Delay)
	}
	return delays
}

func TestClassicGuavaWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RateLimiter.create(2.0, 4 s), cold factor 3:")
		l := algo.Must(newSmoothWarmingUp(algo.PerSecond(2), 4*s, algo.MaxWait(algo.Forever)))
		want := []time.Duration{
			0, 1375 * s / 1000, 1125 * s / 1000, 875 * s / 1000, 625 * s / 1000, // the slope: 4 s
			s / 2, s / 2, s / 2, s / 2, // below the threshold: 2 s
			s / 2, s / 2, // not stored
		}
		require.Equal(t, want, waits(t, l, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
		time.Sleep(acquire(t, l, "k", 0).ResetAfter)
		time.Sleep(4 * s)
		t.Log("after four idle seconds it is cold again, and takes eight at once:")
		require.Equal(t, []time.Duration{0, 6 * s}, waits(t, l, 8, 1))
	})
}

func TestClassicGuavaBursty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RateLimiter.create(1.0):")
		l := algo.Must(newSmoothBursty(algo.PerSecond(1), algo.MaxWait(algo.Forever)))
		require.Equal(t, []time.Duration{0, s, 10 * s, 2 * s, 20 * s}, waits(t, l, 1, 10, 2, 20, 2))
	})
}

func TestClassicNginx(t *testing.T) {
	const denied = -1
	ms := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	for _, c := range []struct {
		name string
		opts []algo.Option
		want []time.Duration
	}{
		{"rate=2r/s", nil, ms(0, denied)},
		{"rate=2r/s burst=5", []algo.Option{algo.Burst(5)}, ms(0, 500, 1000, 1500, 2000, 2500, denied)},
		{"rate=2r/s burst=5 delay=3", []algo.Option{algo.Burst(5), algo.DelayAfter(3)}, ms(0, 0, 0, 0, 500, 1000, denied)},
		{"rate=2r/s burst=5 nodelay", []algo.Option{algo.Burst(5), algo.NoDelay()}, ms(0, 0, 0, 0, 0, 0, denied)},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("limit_req %s, seven requests at once:", c.name)
			l := algo.Must(newNginx(algo.PerSecond(2), c.opts...))
			for i, want := range c.want {
				lease := acquire(t, l, "k", 1)
				t.Logf("  request %d: allowed %v, delay %v", i+1, lease.Allowed, lease.Delay)
				if want < 0 {
					require.False(t, lease.Allowed)
					require.Equal(t, 500*time.Millisecond, lease.RetryAfter, "one slot in half a second")
					continue
				}
				require.True(t, lease.Allowed)
				require.Equal(t, want, lease.Delay)
			}
			time.Sleep(500 * time.Millisecond)
			require.True(t, acquire(t, l, "k", 1).Allowed, "one slot is free")
			require.False(t, acquire(t, l, "k", 1).Allowed, "denials were not charged, nor forgiven")
		})
	}
}
