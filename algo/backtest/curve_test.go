package backtest_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// curves are all algorithms that have one. The count of a window is a placeholder.
var curves = []string{
	"token-bucket N/P", "leaky-bucket N/P", "nginx N/P", "nginx N/P nodelay", "nginx N/P delay 3", "pacer N/P", "pacer N/P slack 2",
	"fixed-window N/P", "fixed-window N/P offset 1.3s", "fixed-window N/day zone Europe/Berlin", "fixed-window N/month zone UTC start 30",
	"sliding-window N/P", "sliding-window N/P cells 1", "sliding-window N/P cells 7", "sliding-log N/P",
}

var rates = []algo.Rate{
	algo.PerSecond(10), algo.PerSecond(7), algo.Per(3, 7*time.Second), algo.PerDay(5), algo.PerSecond(1_000_000), algo.Every(time.Minute), algo.Per(1000, time.Hour),
}

var start = time.Date(2026, 3, 28, 20, 59, 59, 123456789, time.UTC) // two hours before the clocks change in Berlin

// traffic is random: bursts, steady calls and pauses of a few keys, with costs 0 to 4.
func traffic(rnd *rand.Rand, r algo.Rate, n int) (events []backtest.Event) {
	at, unit := start, r.Period/time.Duration(r.Count)
	for range n {
		events = append(events, backtest.Event{At: at, Key: string(rune('a' + rnd.IntN(1+rnd.IntN(8)))), Cost: rnd.Int64N(5)})
		for _, gap := range []time.Duration{unit, 3 * unit, r.Period / 4, 2 * r.Period, 40 * time.Hour}[:rnd.IntN(6)] {
			if rnd.IntN(3) == 0 {
				at = at.Add(time.Duration(rnd.Int64N(int64(gap) + 1)))
			}
		}
	}
	return events
}

// smaller is s with one unit less, if there is such a limit.
func smaller(s algo.Spec) (algo.Spec, bool) {
	switch s.Algorithm {
	case "pacer":
		s.MaxQueue--
		if s.MaxQueue == 0 {
			s, err := algo.Parse(s.String() + " queue 0")
			return s, err == nil
		}
		return s, s.MaxQueue > 0
	case "token-bucket", "leaky-bucket", "nginx":
		s.Burst--
		return s, s.Burst >= 0 && (s.Burst > 0 || s.Algorithm == "nginx")
	}
	s.Rate.Count--
	return s, s.Rate.Count > 0
}

// denied are the keys that the limiter of a Spec denies.
func denied(t *testing.T, s algo.Spec, events []backtest.Event) map[string]bool {
	report, err := backtest.Run(slices.Values(events), backtest.Config{Limits: []algo.Spec{s}})
	require.NoError(t, err)
	keys := map[string]bool{}
	for _, k := range report.Limits[0].Keys {
		keys[k.Name] = true
	}
	return keys
}

// TestCoverIsTheSmallestLimit: the limiter of the size that a curve gives denies nothing to the
// covered keys, and one of one unit less denies at least one of them.
func TestCoverIsTheSmallestLimit(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	found, tight := 0, map[string]int{}
	for trial := range cases.Count(600, 20_000) {
		form, r := curves[trial%len(curves)], rates[rnd.IntN(len(rates))]
		if strings.HasPrefix(form, "sliding-log") {
			r.Count = min(r.Count, 1000)
		}
		s, err := algo.Parse(strings.NewReplacer("N", strconv.FormatInt(r.Count, 10), "P", r.Period.String()).Replace(form))
		require.NoError(t, err)
		events := traffic(rnd, s.Rate, 60)
		report, err := backtest.Run(slices.Values(events), backtest.Config{Curves: []algo.Spec{s}})
		require.NoError(t, err)
		for _, share := range []float64{0, .5, .9, 1} {
			curve := &report.Curves[0]
			cover, ok := curve.Cover(share)
			if trial%2 == 0 {
				cover, ok = curve.CoverRequests(share)
			}
			require.True(t, ok, "%v", s)
			beyond := map[string]bool{}
			for _, k := range curve.Above(cover.Units) {
				beyond[k.Name] = true
			}
			require.EqualValues(t, report.Keys, int64(len(beyond))+cover.Keys)
			require.GreaterOrEqual(t, float64(cover.Keys)+1e-9, share*float64(report.Keys)*float64(trial%2))
			require.Equal(t, beyond, denied(t, cover.Spec, events), "%v", cover.Spec)
			found++
			if less, ok := smaller(cover.Spec); ok {
				wrong := denied(t, less, events)
				for k := range beyond {
					delete(wrong, k)
				}
				require.NotEmpty(t, wrong, "%v denies no covered key, so %v is not the smallest", less, cover.Spec)
				tight[form]++
			}
		}
	}
	require.Positive(t, found)
	if !cases.Race && !testing.Short() {
		require.Len(t, tight, len(curves), "each algorithm had a limit that can be smaller")
	}
}

func TestCurvesThatDoNotExist(t *testing.T) {
	for _, text := range []string{"strict 10/s", "smooth-bursty 10/s", "smooth-warming-up 10/s", "token-bucket 10/s burst 5", "token-bucket 10/s wait 1s", "pacer 10/s queue 0"} {
		s, err := algo.Parse(text)
		require.NoError(t, err)
		_, err = backtest.New(backtest.Config{Curves: []algo.Spec{s}})
		require.ErrorContains(t, err, "want a token-bucket, leaky-bucket, nginx", text)
	}
	_, err := backtest.New(backtest.Config{Curves: []algo.Spec{{Algorithm: "bucket", Rate: algo.PerSecond(1)}}})
	require.ErrorContains(t, err, `algorithm is "bucket"`)
}

// TestNoLimitIsLargeEnough: a level above the largest burst, however it comes about, has no cover.
func TestNoLimitIsLargeEnough(t *testing.T) {
	for _, costs := range [][]int64{{1 << 62}, {1 << 62, 1 << 62, 1}, {3, 3}, {1, 1, 1, 1, 1, 1 << 62}} {
		var events []backtest.Event
		for i, n := range costs {
			events = append(events, backtest.Event{At: start.Add(time.Duration(i)), Key: "large", Cost: n}, backtest.Event{At: start.Add(time.Duration(i)), Key: "small", Cost: 0})
		}
		report, err := backtest.Run(slices.Values(events), backtest.Config{Curves: []algo.Spec{
			{Rate: algo.Per(1, 100*24*time.Hour)}, {Algorithm: "sliding-log", Rate: algo.PerSecond(1)},
		}})
		require.NoError(t, err)
		_, ok := report.Curves[0].Cover(1)
		require.False(t, ok, "%v", costs)
		cover, ok := report.Curves[0].Cover(.5)
		require.True(t, ok)
		require.EqualValues(t, 1, cover.Keys)
		_, ok = report.Curves[1].Cover(1)
		require.Equal(t, costs[0] == 3, ok, "%v", costs)
	}
	empty, err := backtest.Run(slices.Values([]backtest.Event{}), backtest.Config{Curves: []algo.Spec{{Rate: algo.PerSecond(1)}}})
	require.NoError(t, err)
	_, ok := empty.Curves[0].Cover(1)
	require.False(t, ok)
}
