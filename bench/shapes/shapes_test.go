// Package shapes_test drives the same recorded arrivals through every algorithm in virtual time,
// checks the bound of each, and draws what it admits: "make shapes".
package shapes_test

import (
	"context"
	_ "embed"
	"flag"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
	"github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

var out = flag.String("out", "", "directory of the pictures; empty: none")

// trace has arrivals: seconds from the start, one a line, in order.
//
//go:embed trace.txt
var trace string

// TestShapes: no shape admits more than its bound in any 200 ms.
func TestShapes(t *testing.T) {
	var arrivals []float64
	for at := range strings.FieldsSeq(trace) {
		seconds, err := strconv.ParseFloat(at, 64)
		require.NoError(t, err)
		arrivals = append(arrivals, seconds)
	}
	for _, name := range cases.Algorithms() {
		require.True(t, slices.ContainsFunc(shapes, func(s shape) bool { return s.name == name }), "%s: add its shape", name)
	}
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			var starts []float64
			synctest.Test(t, func(t *testing.T) { starts = s.admits(t, arrivals) })
			require.LessOrEqual(t, densest(starts, bin), s.bound)
			t.Logf("admitted %d of %d, at most %d in 100 ms, %d in 1 s", len(starts), len(arrivals), densest(starts, 0.1), densest(starts, 1))
			if *out != "" {
				require.NoError(t, drawing{s, arrivals, starts}.draw(filepath.Join(*out, s.name+".svg")))
			}
		})
	}
}

// densest is the most of times that lie within any window of the given length.
func densest(times []float64, window float64) (most int) {
	first := 0
	for i, t := range times {
		for t-times[first] > window-1e-9 {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// rate is the rate of every shape: 50 a second.
var rate = algo.PerSecond(50)

// shape is one way to keep the rate.
type shape struct {
	name  string // of the file
	title string
	about string
	bound int // of the starts in any 200 ms, as the documentation has it
	make  func() (algo.Limiter, error)
}

// as makes the result of a constructor a Limiter.
func as[L algo.Limiter](l L, err error) (algo.Limiter, error) { return l, err }

var shapes = []shape{
	{"fixed-window", "Fixed window", "twice the limit around a window's edge", 100, func() (algo.Limiter, error) {
		return as(algo.NewFixedWindow(rate))
	}},
	{"sliding-window", "Sliding window, two counters", "the edge is smoothed, not exact", 100, func() (algo.Limiter, error) {
		return as(algo.NewSlidingWindow(rate))
	}},
	{"sliding-window-cells", "Sliding window of 10 cells", "never more than the limit in a window", 50, func() (algo.Limiter, error) {
		return as(algo.NewSlidingWindow(rate, algo.Cells(10)))
	}},
	{"sliding-log", "Sliding log", "exact, one time stamp a unit", 50, func() (algo.Limiter, error) {
		return as(algo.NewSlidingLog(rate))
	}},
	{"strict", "Strict", "never more than the limit, in one word", 50, func() (algo.Limiter, error) {
		return as(classic.NewStrict(rate, 25))
	}},
	{"token-bucket", "Token bucket, burst 50", "a burst, then the rate", 60, func() (algo.Limiter, error) {
		return as(algo.NewTokenBucket(rate))
	}},
	{"leaky-bucket", "Leaky bucket (meter), 20 deep", "the same with a smaller burst", 30, func() (algo.Limiter, error) {
		return as(algo.NewLeakyBucket(rate, algo.Burst(20)))
	}},
	{"pacer", "Pacer (leaky bucket as a queue)", "one every 20 ms, waiting up to 1 s", 11, func() (algo.Limiter, error) {
		return as(algo.NewPacer(rate, algo.MaxWait(time.Second)))
	}},
	{"nginx", "nginx limit_req burst=80 delay=30", "30 at once, the next paced, the rest denied", 91, func() (algo.Limiter, error) {
		return as(classic.NewNginx(rate, 80, 30))
	}},
	{"smooth-bursty", "Guava SmoothBursty", "stored permits, then the rate, waiting up to 1 s", 61, func() (algo.Limiter, error) {
		return as(classic.NewSmoothBursty(rate, time.Second))
	}},
	{"smooth-warming-up", "Guava SmoothWarmingUp, 3 s", "slow from cold, then the rate, waiting up to 1 s", 11, func() (algo.Limiter, error) {
		return as(classic.NewSmoothWarmingUp(rate, 3*time.Second, 3, time.Second))
	}},
	{"srtcm", "RFC 2697 marker, green and yellow", "committed burst 20, excess burst 60", 90, func() (algo.Limiter, error) {
		m, err := marker.NewSRTCM(rate, 20, 60)
		if err != nil {
			return nil, err
		}
		return marker.Limit(m, marker.Yellow), nil
	}},
}

// admits returns when the admitted arrivals start, in seconds.
func (s shape) admits(t *testing.T, arrivals []float64) (starts []float64) {
	l, err := s.make()
	require.NoError(t, err)
	epoch := time.Now()
	for _, at := range arrivals {
		time.Sleep(time.Until(epoch.Add(time.Duration(at * float64(time.Second)))))
		lease, err := l.Acquire(context.Background(), "", 1)
		require.NoError(t, err)
		if lease.Allowed {
			starts = append(starts, (time.Since(epoch) + lease.Delay).Seconds())
		}
	}
	slices.Sort(starts)
	return starts
}
