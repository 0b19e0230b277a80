package machine

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSelfCheck finds the fault of each broken signal, and none in the signal of
// the Go version in use.
func TestSelfCheck(t *testing.T) {
	for reason, read := range map[string]func() (int, bool){
		"":            readRunnable,
		"missing":     func() (int, bool) { return 0, false },
		"constant":    func() (int, bool) { return 0, true },
		"implausible": func() (int, bool) { return math.MaxInt32, true },
	} {
		require.Equal(t, reason, selfCheck(read))
	}
}

// TestSecondSignal: idle goroutines do not count; goroutines of an overload do,
// until it has lasted for more than a minute.
func TestSecondSignal(t *testing.T) {
	var m minimum
	at := int64(time.Hour)
	tick := func(n int) int {
		at += int64(time.Second)
		return m.above(n, at)
	}
	require.Zero(t, tick(1000))
	require.Equal(t, 50, tick(1050))
	require.Zero(t, tick(100), "the connections are closed")
	for range 59 {
		require.Equal(t, 900, tick(1000))
	}
	for range 100 {
		tick(1000)
	}
	require.Zero(t, tick(1000))
}
