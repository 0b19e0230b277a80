package backtest_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func run(t *testing.T, c backtest.Config, events ...backtest.Event) *backtest.Report {
	t.Helper()
	report, err := backtest.Run(slices.Values(events), c)
	require.NoError(t, err)
	return report
}

func TestReport(t *testing.T) {
	report := run(t, backtest.Config{
		Limits: []algo.Spec{{Rate: algo.PerMinute(6), Burst: 2}, {Algorithm: "pacer", Rate: algo.PerSecond(1)}, {Rate: algo.PerHour(1_000_000)}},
	},
		backtest.Event{At: at(0), Key: "a", Cost: 1},
		backtest.Event{At: at(0), Key: "a", Cost: 1},   // the burst is spent
		backtest.Event{At: at(1), Key: "a", Cost: 1},   // denied until 10
		backtest.Event{At: at(2), Key: "b", Cost: 3},   // never fits
		backtest.Event{At: at(4), Key: "a", Cost: 1},   // denied until 10
		backtest.Event{At: at(3), Key: "a", Cost: 0},   // late, and free
		backtest.Event{At: at(11), Key: "a", Cost: 1},  // fits
		backtest.Event{At: at(12), Key: "a", Cost: 1},  // denied until 20
		backtest.Event{At: at(122), Key: "b", Cost: 3}, // never fits
	)
	require.EqualValues(t, 9, report.Requests)
	require.EqualValues(t, 12, report.Units)
	require.EqualValues(t, 2, report.Keys)
	require.EqualValues(t, 1, report.Late)
	require.Equal(t, []time.Time{at(0), at(122)}, []time.Time{report.First, report.Last})
	limit := report.Limits[0]
	require.EqualValues(t, 5, limit.Denied)
	require.Equal(t, []int64{4, 0, 1}, limit.Minutes)
	require.Equal(t, []backtest.Key{
		{Name: "a", Requests: 7, Denied: 3, LockedOut: 9 * time.Second},
		{Name: "b", Requests: 2, Denied: 2, LockedOut: 2 * time.Minute},
	}, limit.Keys)
	require.EqualValues(t, 2, report.Limits[1].Delayed, "the second at 0, and the one after it")
	require.Zero(t, report.Limits[2].Denied)
	require.Empty(t, report.Limits[2].Keys)
	require.EqualValues(t, 1, report.MostInFlight, "no event has a duration")
}

// TestInFlight: the peaks are those of a count of the requests in flight at each arrival.
func TestInFlight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range cases.Count(300, 20_000) {
		events := traffic(rnd, algo.PerSecond(10), 80)
		for i := range events {
			if rnd.IntN(4) > 0 {
				events[i].Duration = time.Duration(rnd.Int64N(int64(time.Second) << rnd.IntN(6)))
			}
			if rnd.IntN(4) == 0 { // it ends when another one begins
				events[i].Duration = events[i+rnd.IntN(len(events)-i)].At.Sub(events[i].At)
			}
		}
		all, peaks := int64(0), map[string]int64{}
		for i, e := range events {
			total, same := int64(1), int64(1)
			for _, before := range events[:i] {
				if before.At.Add(before.Duration).After(e.At) {
					if total++; before.Key == e.Key {
						same++
					}
				}
			}
			all, peaks[e.Key] = max(all, total), max(peaks[e.Key], same)
		}
		report := run(t, backtest.Config{}, events...)
		require.Equal(t, all, report.MostInFlight)
		for _, k := range report.InFlight.Above(0) {
			require.Equal(t, peaks[k.Name], k.Units)
		}
		cover, ok := report.InFlight.Cover(1)
		require.True(t, ok)
		require.EqualValues(t, len(peaks), cover.Keys)
		require.Empty(t, report.InFlight.Above(cover.Units))
	}
}

// TestInFlightLimits: a limit on requests in flight denies what finds no slot among those that it admitted, of
// the key or of all.
func TestInFlightLimits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	denied := 0
	for range cases.Count(300, 20_000) {
		events := traffic(rnd, algo.PerSecond(10), 80)
		for i := range events {
			events[i].Duration = time.Duration(rnd.Int64N(int64(time.Second) << rnd.IntN(6)))
		}
		for _, f := range []backtest.InFlight{{Limit: 1 + rnd.IntN(3)}, {Limit: 1 + rnd.IntN(6), Total: true}} {
			replay, err := backtest.New(backtest.Config{InFlight: []backtest.InFlight{f}})
			require.NoError(t, err)
			var admitted []backtest.Event
			wrong := map[string]int64{}
			for _, e := range events {
				busy := 0
				for _, before := range admitted {
					if (f.Total || before.Key == e.Key) && before.At.Add(before.Duration).After(e.At) {
						busy++
					}
				}
				d, err := replay.Add(e)
				require.NoError(t, err)
				if require.Equal(t, busy < f.Limit, d[0].Allowed); d[0].Allowed {
					admitted = append(admitted, e)
				} else {
					wrong[e.Key]++
					denied++
				}
			}
			report := replay.Report()
			require.Equal(t, f, report.Limits[0].InFlight)
			require.Len(t, report.Limits[0].Keys, len(wrong))
			for _, k := range report.Limits[0].Keys {
				require.Equal(t, wrong[k.Name], k.Denied)
			}
		}
	}
	require.Positive(t, denied)
	_, err := backtest.New(backtest.Config{InFlight: []backtest.InFlight{{}}})
	require.ErrorContains(t, err, "limit is 0")
}

// TestLateEventsEnd: a late event is in flight until its own end.
func TestLateEventsEnd(t *testing.T) {
	report := run(t, backtest.Config{},
		backtest.Event{At: at(10), Key: "a", Cost: 1},
		backtest.Event{At: at(0), Key: "a", Cost: 1, Duration: 11 * time.Second},
		backtest.Event{At: at(1), Key: "a", Cost: 1, Duration: time.Second}, // is over
		backtest.Event{At: at(12), Key: "a", Cost: 1},
	)
	require.EqualValues(t, 2, report.MostInFlight, "the second and the third")
	cover, ok := report.InFlight.Cover(1)
	require.True(t, ok)
	require.EqualValues(t, 2, cover.Units)
	report = run(t, backtest.Config{},
		backtest.Event{At: at(10), Key: "a", Cost: 1},
		backtest.Event{At: at(0), Key: "a", Cost: 1, Duration: 5 * time.Second},
		backtest.Event{At: at(12), Key: "a", Cost: 1},
	)
	require.EqualValues(t, 1, report.MostInFlight)
}

// BenchmarkInFlight is an event beside 100 000 requests in flight that end before it does.
func BenchmarkInFlight(b *testing.B) {
	replay, err := backtest.New(backtest.Config{})
	require.NoError(b, err)
	add := func(i int) {
		_, err := replay.Add(backtest.Event{At: start, Key: "a", Duration: time.Duration(i+1) * time.Second})
		require.NoError(b, err)
	}
	for i := range 100_000 {
		add(i)
	}
	for i := 0; b.Loop(); i++ {
		add(100_000 + i)
	}
}

// TestEdges: sums saturate, and a log longer than a limiter counts is an error, not a lockout.
func TestEdges(t *testing.T) {
	report := run(t, backtest.Config{}, backtest.Event{At: at(0), Cost: math.MaxInt64}, backtest.Event{At: at(0), Cost: 5})
	require.EqualValues(t, int64(math.MaxInt64), report.Units)

	replay, err := backtest.New(backtest.Config{Limits: []algo.Spec{{Rate: algo.PerHour(1), Burst: 1}}})
	require.NoError(t, err)
	month := 0
	for ; ; month++ {
		d, err := replay.Add(backtest.Event{At: start.AddDate(0, month, 0), Key: "a", Cost: 1})
		if err != nil {
			require.ErrorContains(t, err, "more than 4.5 years after the first")
			break
		}
		require.True(t, d[0].Allowed, "month %d", month)
	}
	require.Greater(t, month, 53)
}

// TestLateEvents: an event before the latest one is decided at the latest one's time.
func TestLateEvents(t *testing.T) {
	report := run(t, backtest.Config{Limits: []algo.Spec{{Rate: algo.PerSecond(1), Burst: 1}}, Curves: []algo.Spec{{Rate: algo.PerSecond(1)}}},
		backtest.Event{At: at(10), Key: "a", Cost: 1},
		backtest.Event{At: at(0), Key: "a", Cost: 1},
		backtest.Event{At: at(5), Key: "a", Cost: 1},
		backtest.Event{At: at(11), Key: "a", Cost: 1},
	)
	require.EqualValues(t, 2, report.Late)
	require.Equal(t, []time.Time{at(10), at(11)}, []time.Time{report.First, report.Last})
	require.EqualValues(t, 2, report.Limits[0].Denied)
	cover, ok := report.Curves[0].Cover(1)
	require.True(t, ok)
	require.EqualValues(t, 3, cover.Units)
}

func TestErrors(t *testing.T) {
	_, err := backtest.New(backtest.Config{Limits: []algo.Spec{{Rate: algo.PerSecond(0)}}})
	require.ErrorContains(t, err, "count is 0")
	_, err = backtest.Run(slices.Values([]backtest.Event{{At: start, Cost: -1}}), backtest.Config{})
	require.ErrorIs(t, err, algo.ErrCost)
}

// TestManyKeys: numbers of keys in several blocks stay apart, and a small table of keys is reported.
func TestManyKeys(t *testing.T) {
	const keys = 5000
	var events []backtest.Event
	for i := range 2 * keys {
		k := i % keys
		events = append(events, backtest.Event{At: at(float64(i) / 1e6), Key: time.Duration(k).String(), Cost: int64(1 + k%7)})
	}
	report := run(t, backtest.Config{
		Limits: []algo.Spec{{Rate: algo.PerHour(100), MaxKeys: 16}, {Rate: algo.PerHour(100)}},
		Curves: []algo.Spec{{Rate: algo.PerHour(1)}, {Algorithm: "fixed-window", Rate: algo.PerHour(1)}},
	}, events...)
	require.Positive(t, report.Limits[0].Overflowed)
	require.Zero(t, report.Limits[1].Overflowed)
	for i := range report.Curves {
		for n := range int64(7) {
			beyond := report.Curves[i].Above(2 * n)
			larger := 0
			for k := range keys {
				if int64(1+k%7) > n {
					larger++
				}
			}
			require.Equal(t, larger, len(beyond))
			cover, ok := report.Curves[i].Cover(float64(keys-len(beyond)) / keys)
			require.True(t, ok)
			require.Equal(t, max(2*n, 2), cover.Units)
		}
	}
}
