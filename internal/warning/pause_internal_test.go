package warning

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPauseOfAClockThatWasSetBack: no problem is kept silent for as long as the clock was ahead.
func TestPauseOfAClockThatWasSetBack(t *testing.T) {
	var p Pause
	p.end.Store(time.Now().AddDate(1, 0, 0).UnixNano())
	require.True(t, p.Over(time.Minute))
	require.False(t, p.Over(time.Minute))
}
