package algo_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// A reset is remembered for as long as a lease from before it weighs anything,
// even when the key is evicted and comes back meanwhile.
func TestResetOutlivesTheKey(t *testing.T) {
	type resetter interface {
		algo.Limiter
		Reset(key string)
	}
	for name, make := range map[string]func() resetter{
		"marker": func() resetter {
			m, err := colors.NewSRTCM(algo.PerSecond(1), 100, 5, algo.MaxKeys(1))
			require.NoError(t, err)
			return colors.Limit(m, colors.Green).(resetter)
		},
		"warming up": func() resetter {
			return algo.Must(newSmoothWarmingUp(algo.PerSecond(1), 1, algo.MaxKeys(1), algo.MaxWait(algo.Forever)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make()
				old := acquire(t, l, "k", 100)
				l.Reset("k")
				acquire(t, l, "k", 1)
				time.Sleep(3 * time.Second) // the one is paid off
				for i := range 100 {        // more keys than slots
					acquire(t, l, string(rune('a'+i)), 1)
				}
				acquire(t, l, "k", 50)
				before := acquire(t, l, "k", 0).Decision
				old.Release(algo.Canceled)
				require.Equal(t, before, acquire(t, l, "k", 0).Decision)
			})
		})
	}
}

// Settling up and down gains nothing from the charges of others.
func TestSettlingBackAndForthMintsNothing(t *testing.T) {
	marker, err := colors.NewTRTCM(algo.PerHour(1), 10, algo.PerHour(2), 10)
	require.NoError(t, err)
	for name, make := range map[string]func() algo.Limiter{
		"marker": func() algo.Limiter { return colors.Limit(marker, colors.Green) },
		"warming up": func() algo.Limiter {
			return algo.Must(newSmoothWarmingUp(algo.PerHour(1), 5*time.Hour, algo.MaxWait(algo.Forever)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := make()
				lease := acquire(t, l, "k", 3)
				acquire(t, l, "k", 7)
				full := acquire(t, l, "k", 0).ResetAfter
				for range 10 {
					lease.Settle(0)
					lease.Settle(3)
					require.GreaterOrEqual(t, acquire(t, l, "k", 0).ResetAfter, full)
					lease.Settle(1 << 30)
					lease.Settle(3)
					require.GreaterOrEqual(t, acquire(t, l, "k", 0).ResetAfter, full)
				}
			})
		})
	}
}

// TestResetOfAnUnseenKey: a key without debt needs no reset, takes no place in the
// table and evicts no key.
func TestResetOfAnUnseenKey(t *testing.T) {
	for _, name := range cases.Limits("5/h", atOnce) {
		l := made(name, algo.MaxKeys(8))
		for i := range 100 {
			l.Allow(fmt.Sprint(i), 2)
		}
		keys, evicted := l.Stats().Live, l.Stats().Overflowed
		for i := range 100 {
			l.Reset(fmt.Sprint("unseen", i))
		}
		require.Equal(t, keys, l.Stats().Live, name)
		require.Equal(t, evicted, l.Stats().Overflowed, name)
	}
	b := bucket(algo.PerHour(5), algo.MaxKeys(8), algo.DenyNew())
	for i := range 100 {
		b.Reset(fmt.Sprint(i))
	}
	require.Zero(t, b.Stats().Overflowed)
	require.True(t, b.Allow("new", 1), "there is room")
}
