package machine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limited is a machine with two processors and a quota.
type limited struct {
	Real
	quota float64
	bits  uint64
}

func (limited) Procs() int               { return 2 }
func (m limited) Quota() (float64, bool) { return m.quota, m.quota > 0 }
func (m limited) Rand() uint64           { return m.bits }

func TestCapacity(t *testing.T) {
	for quota, want := range map[float64]float64{0: 2, .5: .5, 1.5: 1.5, 3: 2} {
		require.Equal(t, want, Capacity(limited{quota: quota}), "quota %v", quota)
	}
}

func TestFloat64(t *testing.T) {
	require.Zero(t, Float64(limited{bits: 0}))
	require.Equal(t, .5, Float64(limited{bits: 1 << 63}))
	require.Less(t, Float64(limited{bits: math.MaxUint64}), 1.0)
	sum := 0.0
	for range 10_000 {
		sum += Float64(Real{})
	}
	require.InDelta(t, 5000, sum, 300)
}

// TestReal: time goes on, and work uses processor time.
func TestReal(t *testing.T) {
	m := Real{}
	at, used := m.Now(), time.Duration(0)
	require.Positive(t, at)
	used, known := m.CPU()
	for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
	}
	require.Greater(t, m.Now(), at)
	if now, ok := m.CPU(); known {
		require.True(t, ok)
		require.Greater(t, now, used)
	}
	_, ok := m.Runnable()
	require.True(t, ok)
	require.Positive(t, m.Procs())
}
