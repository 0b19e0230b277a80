package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHighest: the first rate that is served in time, going down; an error ends the trials, and a
// server that serves none is one.
func TestHighest(t *testing.T) {
	var tried []float64
	below := func(most float64) func(float64) (bool, error) {
		return func(rate float64) (bool, error) {
			tried = append(tried, rate)
			return rate <= most, nil
		}
	}
	rate, err := highest(1000, below(2000))
	require.NoError(t, err)
	require.InDelta(t, 1000.0, rate, 0)
	require.Len(t, tried, 1)

	rate, err = highest(1000, below(800))
	require.NoError(t, err)
	require.InDelta(t, 773.8, rate, .1)
	require.IsDecreasing(t, tried[1:])

	_, err = highest(1000, below(0))
	require.ErrorContains(t, err, "no rate in time")
	broken := errors.New("broken")
	_, err = highest(1000, func(float64) (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken)
}
