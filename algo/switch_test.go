package algo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestSwitch(t *testing.T) {
	inner := bucket(algo.PerHour(1))
	s := algo.NewSwitch(inner)
	require.True(t, s.IsOn())
	held := must(t, s, "k", 1)
	require.False(t, must(t, s, "k", 1).Allowed)

	s.Off()
	require.False(t, s.IsOn())
	for range 10 {
		lease := must(t, s, "k", 7)
		require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceOff}, lease.Decision)
		lease.Release(algo.Canceled)
	}
	_, err := s.Acquire(bg, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	held.Release(algo.Canceled)

	s.On()
	require.True(t, must(t, s, "k", 1).Allowed, "given back while it was off")
	require.False(t, must(t, s, "k", 1).Allowed)
}
