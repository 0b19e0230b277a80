package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlay: an overload ruins a server without a limit and not one with RunQueue, the same
// settings show the same page, and every handler of the page exists.
func TestPlay(t *testing.T) {
	for _, handler := range handlers {
		first, err := play(settings{handler, 3, 20})
		require.NoError(t, err)
		again, err := play(settings{handler, 3, 20})
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, handler, first.Settings.Handler)
		require.Len(t, first.Lanes, 6)
		kept := map[string]float64{}
		for _, l := range first.Lanes {
			require.Len(t, l.Goodput, 45, l.Name)
			kept[l.Name] = l.Kept
		}
		require.Less(t, kept["none"], .2, handler)
		require.Greater(t, kept["RunQueue"], .85, handler)
	}
}

// TestSettingsAreClamped: an address of the page may say anything.
func TestSettingsAreClamped(t *testing.T) {
	require.Equal(t, settings{"5ms", 10, 1}, settings{"x", 1e9, -4}.clamped())
	_, err := play(settings{"", -1, 1 << 40})
	require.NoError(t, err)
}
