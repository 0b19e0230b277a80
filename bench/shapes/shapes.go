package main

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
	"github.com/sluice-go/sluice/algo/marker"
)

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
func (s shape) admits(arrivals []float64) (starts []float64, err error) {
	l, err := s.make()
	if err != nil {
		return nil, err
	}
	epoch := time.Now()
	for _, at := range arrivals {
		time.Sleep(time.Until(epoch.Add(time.Duration(at * float64(time.Second)))))
		lease, err := l.Acquire(context.Background(), "", 1)
		if err != nil {
			return nil, err
		}
		if lease.Allowed {
			starts = append(starts, (time.Since(epoch) + lease.Delay).Seconds())
		}
	}
	slices.Sort(starts)
	return starts, nil
}
