package meter_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
)

// The first total counts. Another one is logged once; the same one, and a total of a stream
// that was denied, are not.
func TestMeterSettledTwice(t *testing.T) {
	l := bucket(algo.PerHour(100))
	meter.ResetWarnings()
	same := captureLog(t, func() {
		m := start(t, l, 10, 10)
		m.Settle(7)
		m.Settle(7)
		m.Close()
		denied := start(t, l, 200, 10)
		denied.Settle(7)
	})
	require.Empty(t, same)
	other := captureLog(t, func() {
		for range 3 {
			m := start(t, l, 10, 10)
			m.Use(4)
			m.Close()
			m.Settle(9)
			m.Settle(0)
		}
	})
	require.Equal(t, 1, strings.Count(other, "code=algo.settled_twice"), other)
	require.EqualValues(t, 100-7-3*4, peek(t, l, "k").Remaining)
}

// A stream that never ends keeps its reservation until it has drained, and no longer.
func TestMeterThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerHour(100))
		m := start(t, l, 20, 50)
		m.Use(20)
		require.True(t, reserve(t, m, 1).Allowed)
		require.EqualValues(t, 30, peek(t, l, "k").Remaining)
		time.Sleep(42 * time.Minute)
		require.EqualValues(t, 100, peek(t, l, "k").Remaining)
		m.Close()
		require.EqualValues(t, 100, peek(t, l, "k").Remaining, "nothing is minted")
	})
}
