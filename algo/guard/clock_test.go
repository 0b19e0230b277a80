package guard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestBanOnAClock: bans go by the clock that was given.
func TestBanOnAClock(t *testing.T) {
	clock := fakes.ClockAt(time.Unix(0, 0))
	on := algo.Clock(clock.Now)
	b, err := guard.NewBan(algo.Must(algo.NewTokenBucket(algo.PerHour(1), on)), algo.PerMinute(2), time.Hour, 24*time.Hour, on)
	require.NoError(t, err)
	require.True(t, must(t, b, "k", 1).Allowed)
	require.Equal(t, algo.Quota, must(t, b, "k", 1).Reason)
	clock.Advance(time.Minute)
	require.Equal(t, algo.Quota, must(t, b, "k", 1).Reason, "the first denial was a minute ago")
	d := must(t, b, "k", 1)
	require.Equal(t, algo.Banned, d.Reason)
	require.Equal(t, time.Hour, d.RetryAfter)
	clock.Advance(time.Hour - 1)
	require.Equal(t, time.Duration(1), b.Banned("k"))
	clock.Advance(1)
	require.True(t, must(t, b, "k", 1).Allowed)
	require.Equal(t, 1, b.Len())
	clock.Advance(time.Hour + 1)
	require.Zero(t, b.Len())
}
