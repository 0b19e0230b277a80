package keystore

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	require.EqualValues(t, 64, ToTicks(1))
	require.EqualValues(t, -64, ToTicks(-1))
	require.Equal(t, ToTicks(math.MaxInt64), ToTicks(math.MaxInt64-1), "saturated")
	require.Positive(t, ToTicks(math.MaxInt64))
	require.Equal(t, time.Duration(0), ToDuration(0))
	require.Equal(t, time.Duration(1), ToDuration(1), "rounded up")
	require.Equal(t, time.Duration(1), ToDuration(64))
	require.Equal(t, time.Duration(2), ToDuration(65))
	c := StartClock(nil)
	require.Positive(t, c.Now(), "0 is the word of a key that was never used")
}
