package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

func TestLimitsNameTheFieldAndTheValue(t *testing.T) {
	store := newStore(t, nowhere(t))
	for _, tc := range []struct {
		name string
		rate algo.Rate
		opts []algo.Option
		says string
	}{
		{"", algo.PerSecond(1), nil, "name"},
		{"a", algo.PerSecond(0), nil, "count is 0"},
		{"a", algo.Per(1, 0), nil, "period is 0s"},
		{"a", algo.PerSecond(1_000_001), nil, "faster than 1e6"},
		{"a", algo.PerSecond(1), []algo.Option{algo.Burst(-1)}, "burst is -1"},
		{"a", algo.PerDay(1), []algo.Option{algo.Burst(1 << 50)}, "burst is"},
		{"a", algo.PerSecond(1), []algo.Option{{}}, "zero Option"},
	} {
		_, err := store.TokenBucket(tc.name, tc.rate, tc.opts...)
		require.ErrorContains(t, err, tc.says)
	}
}

func TestLimitsChangeWhileTheyRun(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	remote(t, l, "alice", 10)
	require.NoError(t, l.SetRate(algo.PerHour(20)))
	d := acquire(t, l, "alice", 0)
	require.Equal(t, int64(20), d.Limit, "the burst follows the rate")
	require.Zero(t, d.Remaining, "debt is time, and stays")
	require.NoError(t, l.SetBurst(5))
	require.Equal(t, int64(5), acquire(t, l, "alice", 0).Limit)
	require.Error(t, l.SetRate(algo.Rate{}))
	require.Error(t, l.SetBurst(0))
	desc := algo.About(l)
	require.Equal(t, algo.Description{Rate: algo.PerHour(20), Quota: 5, Remote: true, Window: 15 * time.Minute}, desc)
}

func TestOptionsThatDoNotBelongAreErrors(t *testing.T) {
	store := newStore(t, nowhere(t))
	for _, tc := range []struct {
		make maker
		opt  algo.Option
		says string
	}{
		{store.TokenBucket, algo.Cells(3), "Cells"},
		{store.LeakyBucket, algo.MaxWait(1), "MaxWait"},
		{store.FixedWindow, algo.Cells(3), "does not take the option Cells"},
		{store.SlidingWindow, algo.Cells(3), "does not take cells on Redis"},
		{store.SlidingLog, algo.Burst(3), "Burst"},
		{store.Pacer, algo.Burst(3), "Burst"},
	} {
		_, err := tc.make("a", algo.PerSecond(1), tc.opt)
		require.ErrorContains(t, err, tc.says)
		require.ErrorContains(t, err, `"a"`)
	}
	for name, make := range makers(store) {
		_, err := make(name, algo.PerSecond(1), algo.MaxKeys(100), algo.DenyNew())
		require.NoError(t, err)
	}
	_, err := store.FixedWindow("day", algo.PerDay(5), algo.Zone("Berlin"))
	require.ErrorContains(t, err, `fixed window "day": `)
	require.ErrorContains(t, err, `zone is "Berlin", want a name of the tz database`)
	must[*distributed.Limiter](t)(store.FixedWindow("budget", algo.PerDay(50_000_000)))
	_, err = store.SlidingWindow("big", algo.PerDay(1_000_000))
	require.ErrorContains(t, err, "count is 1000000, want at most 104249")
	for _, n := range []int64{10_001, 1_000_000} { // the latter is more than algo.SlidingLog takes
		_, err = store.SlidingLog("big", algo.PerDay(n))
		require.EqualError(t, err, fmt.Sprintf(`distributed: sliding log "big": rate: count is %d, want at most 10000`, n))
	}
	l := must[*distributed.Limiter](t)(store.FixedWindow("w", algo.PerSecond(1)))
	require.ErrorContains(t, l.SetBurst(3), "does not take the option Burst")
	_, err = store.TokenBucket("w", algo.PerSecond(1))
	require.ErrorContains(t, err, `"w": the name belongs to a fixed window`)
}

// TestRateOfZero: no limit on Redis has a rate of 0, and a limit in use keeps its own.
func TestRateOfZero(t *testing.T) {
	const want = "count is 0, want 1 or more (algo.DenyAll denies everything)"
	store := newStore(t, nowhere(t))
	for name, make := range makers(store) {
		_, err := make(name, algo.PerMinute(0))
		require.ErrorContains(t, err, want)
		l, err := make(name, algo.PerMinute(5))
		require.NoError(t, err)
		require.ErrorContains(t, l.SetRate(algo.Rate{}), want)
		d := algo.About(l)
		require.EqualValues(t, 5, d.Quota)
	}
	require.ErrorContains(t, distributed.Validate(algo.Spec{}), want)
}
