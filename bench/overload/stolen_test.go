package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStolen(t *testing.T) {
	before := ticksOf("cpu  10 0 5 80 1 2 2 0 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	after := ticksOf("cpu  40 0 15 120 1 2 2 20 9 9\n")
	require.InDelta(t, .2, after.since(before), 1e-9)
	require.Zero(t, ticksOf("").since(ticks{}))

	quiet := cellOf("5ms", "default", 5, .98)
	page, _ := written(t, quiet)
	require.NotContains(t, page, "the host took")
	loud := cellOf("5ms", "default", 2, .98)
	loud.Stolen = .3
	page, _ = written(t, quiet, loud)
	require.Contains(t, page, "the host took 15.0 % of the processors' time, 30 % in the worst cell\n")
}
