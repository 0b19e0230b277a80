package trial_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
	"github.com/sluice-go/sluice/programs/plan/trial"
)

var start = time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)

var config = backtest.Config{
	Limits: []algo.Spec{{Rate: algo.PerSecond(2), Burst: 5}, {Algorithm: "sliding-log", Rate: algo.PerMinute(30)}},
	Curves: []algo.Spec{{Rate: algo.PerSecond(1)}, {Algorithm: "fixed-window", Rate: algo.PerMinute(1)}},
}

func byUser() trial.Track {
	return trial.Track{Need: "user", Key: func(r *accesslog.Record) (string, bool) { return r.Get("user") }, Config: config}
}

func options() trial.Options {
	return trial.Options{Window: 10 * time.Second, MostBad: .01, Samples: 3}
}

// traffic are events of a few minutes, in order of time.
func traffic(rnd *rand.Rand, n int) (events []backtest.Event) {
	at := start
	for range n {
		at = at.Add(time.Duration(rnd.ExpFloat64() * float64(100*time.Millisecond))).Truncate(time.Microsecond)
		events = append(events, backtest.Event{At: at, Key: fmt.Sprint("u", rnd.IntN(20)), Cost: 1})
	}
	return events
}

// log writes events as CSV.
func log(name string, events []backtest.Event) trial.Log {
	var b strings.Builder
	b.WriteString("time,user\n")
	for _, e := range events {
		fmt.Fprintf(&b, "%s,%s\n", e.At.Format(time.RFC3339Nano), e.Key)
	}
	return trial.Log{Name: name, Reader: strings.NewReader(b.String())}
}

// figures are what two replays of the same events have in common.
func figures(r *backtest.Report) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Requests, r.Keys, r.First, r.Last, r.Late)
	for _, l := range r.Limits {
		fmt.Fprintln(&b, l.Spec, l.Denied, l.Keys, l.Minutes)
	}
	for i := range r.Curves {
		fmt.Fprintln(&b, r.Curves[i].Spec, r.Curves[i].Above(0))
	}
	return b.String()
}

// TestOrder: lines that are out of order by less than the window, in one log or spread over several, give
// the figures of the sorted events.
func TestOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range algotest.Cases(20, 1000) {
		events := traffic(rnd, 3000)
		want, err := backtest.Run(slices.Values(events), config)
		require.NoError(t, err)

		written := map[*backtest.Event]time.Time{}
		shuffled := make([]*backtest.Event, len(events))
		for i := range events {
			shuffled[i] = &events[i]
			written[&events[i]] = events[i].At.Add(time.Duration(rnd.Int64N(int64(9 * time.Second))))
		}
		slices.SortFunc(shuffled, func(a, b *backtest.Event) int { return cmp.Compare(written[a].UnixNano(), written[b].UnixNano()) })
		parts := make([][]backtest.Event, 1+rnd.IntN(4))
		for _, e := range shuffled {
			i := rnd.IntN(len(parts))
			parts[i] = append(parts[i], *e)
		}
		var logs []trial.Log
		for i, p := range parts {
			logs = append(logs, log(fmt.Sprint("log", i), p))
		}
		got, err := trial.Run(t.Context(), logs, []trial.Track{byUser()}, options())
		require.NoError(t, err)
		require.Zero(t, got.Late)
		require.EqualValues(t, len(events)+len(parts), got.Lines, "and the headers")
		require.Equal(t, figures(want), figures(got.Tracks[0].Report))
	}
}

// TestClockSteps: records that are too late are counted, and decided at a later time.
func TestClockSteps(t *testing.T) {
	events := traffic(rand.New(rand.NewPCG(3, 4)), 1000)
	for i := 500; i < 600; i++ { // the clock of the server was an hour behind
		events[i].At = events[i].At.Add(-time.Hour)
	}
	o := options()
	_, err := trial.Run(t.Context(), []trial.Log{log("log", events)}, []trial.Track{byUser()}, o)
	require.ErrorContains(t, err, "100 of 1000 records (10 %) are out of order by more than 10s")
	o.MostBad = .1
	got, err := trial.Run(t.Context(), []trial.Log{log("log", events)}, []trial.Track{byUser()}, o)
	require.NoError(t, err)
	require.EqualValues(t, 100, got.Late)
	require.EqualValues(t, 1000, got.Tracks[0].Requests)
	require.EqualValues(t, 100, got.Tracks[0].Late)
	require.True(t, got.Tracks[0].First.Equal(events[0].At))
	require.True(t, got.Tracks[0].Last.Equal(events[999].At))
}

func TestBadLines(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(readAll(log("", traffic(rand.New(rand.NewPCG(5, 6)), 1000)))), "\n")
	for i := 100; i < 110; i++ {
		lines[i] = "cut"
	}
	lines[110] = "1816-01-01T00:00:00Z,u1"
	bad := func(most float64) (*trial.Result, error) {
		o := options()
		o.MostBad = most
		var counted atomic.Int64
		o.Lines = &counted
		r, err := trial.Run(t.Context(), []trial.Log{{Name: "access.csv", Reader: strings.NewReader(strings.Join(lines, "\n"))}}, []trial.Track{byUser()}, o)
		if err == nil {
			require.EqualValues(t, 1001, counted.Load())
		}
		return r, err
	}
	r, err := bad(.02)
	require.NoError(t, err)
	require.EqualValues(t, 11, r.Bad)
	require.Equal(t, []string{
		"access.csv:101: 1 values, the first line has 2", "access.csv:102: 1 values, the first line has 2", "access.csv:103: 1 values, the first line has 2",
	}, r.Samples)
	require.EqualValues(t, 989, r.Tracks[0].Requests)
	_, err = bad(.01)
	require.ErrorContains(t, err, "11 of 1001 lines cannot be read, more than 1 %")
	require.ErrorContains(t, err, "access.csv:101:")
}

func readAll(l trial.Log) string {
	var b strings.Builder
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			return b.String()
		}
	}
}

func TestMissingKeys(t *testing.T) {
	track := trial.Track{Need: "header:X-Api-Key", Key: func(r *accesslog.Record) (string, bool) { return r.Get("header:X-Api-Key") }}
	_, err := trial.Run(t.Context(), []trial.Log{log("log", traffic(rand.New(rand.NewPCG(7, 8)), 10))}, []trial.Track{track}, options())
	require.ErrorContains(t, err, `no line has the field of the key "header:X-Api-Key". The log has: time, user.`)

	text := "time,user\n2026-11-28T23:00:00Z,a\n2026-11-28T23:00:01Z,\n2026-11-28T23:00:02Z,-\n"
	got, err := trial.Run(t.Context(), []trial.Log{{Name: "log", Reader: strings.NewReader(text)}}, []trial.Track{byUser()}, options())
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Tracks[0].Missing)
	require.EqualValues(t, 1, got.Tracks[0].Requests)

	// A long log is not read to its end for it.
	long := trial.Log{Name: "log", Reader: endless{}}
	_, err = trial.Run(t.Context(), []trial.Log{long}, []trial.Track{track}, options())
	require.ErrorContains(t, err, "no line has the field")
}

// endless is a log without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	const line = `{"time":"2026-11-28T21:05:46Z","user":"a"}` + "\n"
	return copy(p, line), nil
}

func TestNothing(t *testing.T) {
	_, err := trial.Run(t.Context(), []trial.Log{{Name: "log", Reader: strings.NewReader("")}}, []trial.Track{byUser()}, options())
	require.ErrorContains(t, err, "no lines")
	_, err = trial.Run(t.Context(), []trial.Log{log("log", nil)}, []trial.Track{{Config: backtest.Config{Limits: []algo.Spec{{}}}}}, options())
	require.ErrorContains(t, err, "count is 0")
}

// TestDemand: the intervals sum up to all units, become longer for a longer log, and the heaviest keys are
// found in one pass.
func TestDemand(t *testing.T) {
	rnd, requests := rand.New(rand.NewPCG(9, 10)), max(algotest.Cases(60_000, 60_000), 3000)
	for _, step := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour} {
		units := map[string]int64{}
		var events []backtest.Event
		at := start
		for range requests {
			key := fmt.Sprint("u", rnd.IntN(50_000))
			if rnd.IntN(3) == 0 {
				key = "heavy" + fmt.Sprint(rnd.IntN(3))
			}
			units[key]++
			events = append(events, backtest.Event{At: at, Key: key})
			at = at.Add(time.Duration(rnd.Int64N(int64(step))).Truncate(time.Microsecond))
		}
		got, err := trial.Run(t.Context(), []trial.Log{log("log", events)}, []trial.Track{byUser()}, options())
		require.NoError(t, err)
		d := got.Tracks[0].Demand
		require.LessOrEqual(t, len(d.All), 1500)
		require.EqualValues(t, requests, sum(d.All))
		require.False(t, d.Start.After(start))
		require.Less(t, start.Sub(d.Start), d.Interval)
		require.Less(t, at.Sub(d.Start), time.Duration(len(d.All)+1)*d.Interval)
		require.GreaterOrEqual(t, len(d.Heaviest), 3)
		for _, h := range d.Heaviest[:3] { // in a short log a light key may follow
			require.Contains(t, h.Key, "heavy")
			require.LessOrEqual(t, h.Units, units[h.Key])
			require.Equal(t, units[h.Key], sum(h.Intervals), "they came early, so nothing of them is missing")
		}
	}
}

func sum(all []int64) (n int64) {
	for _, one := range all {
		n += one
	}
	return n
}
