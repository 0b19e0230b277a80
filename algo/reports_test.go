package algo_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// What users of other limiters have reported; docs/track-record.md has the links.

// TestFloodOfRefusals: refusals of a flood leave no debt behind (model-hotel#977).
func TestFloodOfRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerMinute(1), algo.Burst(5), algo.MaxWait(time.Minute)))
		var flood sync.WaitGroup
		for range 2000 {
			flood.Go(func() { _, _ = l.Acquire(bg, "k", 1) })
		}
		flood.Wait()
		require.Equal(t, time.Minute, must(t, l, "k", 1).RetryAfter)
	})
}

// TestUnsteadyClock: a burst is a burst where the clock steps to and fro (MediaWiki-MCP-Server#557,
// governor#299).
func TestUnsteadyClock(t *testing.T) {
	for _, step := range []time.Duration{300 * time.Microsecond, 11 * time.Second} {
		clock := fakes.ClockAt(time.Unix(1e9, 0))
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Burst(10), algo.Clock(clock.Now)))
		for range 10 {
			require.True(t, l.Allow("k", 1))
			step = -step
			clock.Advance(step)
		}
		require.False(t, l.Allow("k", 1))
	}
}

// TestOneQuotaADay: after midnight there is one, however often keys ask before 24 hours have passed,
// and a day of 25 hours ends at midnight too (aiproxy#640, OmniRoute#13671).
func TestOneQuotaADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	clock := fakes.ClockAt(time.Date(2026, 10, 24, 18, 0, 0, 0, berlin))
	l := algo.Must(algo.NewFixedWindow(algo.PerDay(10), algo.Zone("Europe/Berlin"), algo.Clock(clock.Now)))
	require.True(t, l.Allow("k", 10))
	clock.Advance(6 * time.Hour)
	require.True(t, l.Allow("k", 10))
	for range 24 {
		clock.Advance(time.Hour)
		require.False(t, l.Allow("k", 1))
	}
	require.Equal(t, time.Hour, must(t, l, "k", 1).RetryAfter)
}
