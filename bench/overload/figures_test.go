package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/loadgen"
)

const ms = time.Millisecond

// every makes n answers a second from begin to end.
func every(n int, begin, end, took time.Duration, status int16) (all []loadgen.Answer) {
	for at := begin; at < end; at += time.Second / time.Duration(n) {
		all = append(all, loadgen.Answer{At: at, Took: took, Status: status})
	}
	return all
}

// TestTake: one run, of which the figures can be counted by hand.
func TestTake(t *testing.T) {
	p := planOf(6*time.Second, 5)
	require.Equal(t, plan{before: 4 * time.Second, during: 6 * time.Second, after: 5 * time.Second, settle: 2 * time.Second}, p)
	var all []loadgen.Answer
	all = append(all, every(100, 0, 4*time.Second, 10*ms, 200)...)
	for _, a := range every(400, 4*time.Second, 10*time.Second, 20*ms, 503) {
		switch a.At / (2500 * time.Microsecond) % 4 {
		case 0:
			a.Status = 200
		case 1:
			a.Status, a.Took = 200, 300*ms
		case 2:
			a.Status, a.Took = loadgen.TimedOut, 2*time.Second
		}
		all = append(all, a)
	}
	all = append(all, every(100, 10*time.Second, 11*time.Second, 2*time.Second, loadgen.TimedOut)...)
	all = append(all, every(100, 11*time.Second, 15*time.Second, 10*ms, 200)...)
	f := figures{Capacity: 100, Times: 5}
	f.take(all, p, 250*ms)
	require.Equal(t, 1.0, f.Goodput)
	require.Equal(t, .25, f.Rejected)
	require.Equal(t, .25, f.GaveUp)
	require.Equal(t, 300*ms, f.P99)
	require.Equal(t, time.Second, f.Recovery)
	require.Zero(t, f.Before+f.After+f.Lost)
}

func TestTakeCalm(t *testing.T) {
	p := planOf(2*time.Second, .85)
	all := append(every(100, 0, 3*time.Second, 10*ms, 200), every(100, 3*time.Second, 6*time.Second, 10*ms, 503)...)
	f := figures{Capacity: 100, Times: .85}
	f.take(all, p, 250*ms)
	counted := (6*time.Second - p.settle).Seconds()
	require.InDelta(t, 3/counted, f.Before, .01)
	require.InDelta(t, .85*(1-3/counted), f.Goodput, .01)
}

// TestShortRuns: a run of a fraction of a second has figures too.
func TestShortRuns(t *testing.T) {
	for _, times := range []float64{.85, 5} {
		f := figures{Capacity: 100, Times: times}
		f.take(nil, planOf(100*ms, times), 250*ms)
		require.NotContains(t, fmt.Sprintf("%+v", f), "NaN")
		require.NoError(t, appendLine(t.TempDir()+"/records", f))
	}
}

func TestLeft(t *testing.T) {
	f := figures{Capacity: 1000, RejectCost: 100e-6, Times: 10} // a tenth of a request
	f.left()
	require.Zero(t, f.Left)
	f.Times = 1
	f.left()
	require.InDelta(t, 1, f.Left, 1e-9)
	f.Times = 5.5
	f.left()
	require.InDelta(t, .5, f.Left, 1e-9)
}
