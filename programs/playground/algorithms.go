package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
)

// algorithm is one way to keep a limit.
type algorithm struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`
	Sized bool   `json:"sized"` // it has a burst
	make  func(c *chosen) (algo.Limiter, error)
}

// chosen is the limit of the moment, for limiters that ask for it.
type chosen struct{ limit, burst atomic.Int64 }

func (c *chosen) rate() algo.Rate { return algo.PerSecond(c.limit.Load()) }

// as makes the result of a constructor a Limiter.
func as[L algo.Limiter](l L, err error) (algo.Limiter, error) { return l, err }

// Those that delay do so for a second at most; nginx as long as its burst lasts.
const (
	maxWait = time.Second
	warmUp  = 3 * time.Second
	maxKeys = 2 * mostUsers
)

var algorithms = []algorithm{
	{"token-bucket", "Token bucket", "a burst, then the rate", true, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewTokenBucket(c.rate(), algo.Burst(c.burst.Load()), algo.MaxKeys(maxKeys)))
	}},
	{"leaky-bucket", "Leaky bucket", "the same, seen from the other side", true, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewLeakyBucket(c.rate(), algo.Burst(c.burst.Load()), algo.MaxKeys(maxKeys)))
	}},
	{"pacer", "Pacer", "evenly spaced, waits up to 1 s", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewPacer(c.rate(), algo.MaxWait(maxWait), algo.MaxKeys(maxKeys)))
	}},
	{"nginx", "nginx limit_req", "a burst waits for the rate", true, func(c *chosen) (algo.Limiter, error) {
		return as(classic.NewNginx(c.rate(), c.burst.Load(), 0, algo.MaxKeys(maxKeys)))
	}},
	{"fixed-window", "Fixed window", "all back as the second turns", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewFixedWindow(c.rate(), algo.MaxKeys(maxKeys)))
	}},
	{"sliding-window", "Sliding window, 2 counters", "smoothed, not exact", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewSlidingWindow(c.rate(), algo.MaxKeys(maxKeys)))
	}},
	{"sliding-cells", "Sliding window, 10 cells", "exact, a tenth late", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewSlidingWindow(c.rate(), algo.Cells(10), algo.MaxKeys(maxKeys)))
	}},
	{"sliding-log", "Sliding log", "exact in any second", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.NewSlidingLog(c.rate(), algo.MaxKeys(maxKeys)))
	}},
	{"strict", "Strict", "exact in one word, half the rate", false, func(c *chosen) (algo.Limiter, error) {
		return as(algo.Spec{Algorithm: "strict", Rate: c.rate()}.New(algo.MaxKeys(maxKeys)))
	}},
	{"smooth-bursty", "Guava SmoothBursty", "waits for the one before", true, func(c *chosen) (algo.Limiter, error) {
		return as(classic.NewSmoothBursty(c.rate(), maxWait, algo.Burst(c.burst.Load()), algo.MaxKeys(maxKeys)))
	}},
	{"warming-up", "Guava SmoothWarmingUp", "slow from cold", false, func(c *chosen) (algo.Limiter, error) {
		return as(classic.NewSmoothWarmingUp(c.rate(), warmUp, 3, maxWait, algo.MaxKeys(maxKeys)))
	}},
	{"in-flight", "In flight", "burst = how many at once", true, func(c *chosen) (algo.Limiter, error) {
		return as(adaptive.PerKey(1, adaptive.WithLimitOf(func(context.Context, string) int { return int(c.burst.Load()) })))
	}},
}

// adjust changes the limit of l while it runs; users keep their debt.
func (a algorithm) adjust(l algo.Limiter, c *chosen) error {
	if s, ok := l.(interface{ SetRate(algo.Rate) error }); ok {
		if err := s.SetRate(c.rate()); err != nil {
			return err
		}
	}
	if s, ok := l.(interface{ SetBurst(int64) error }); ok && a.Sized {
		return s.SetBurst(c.burst.Load())
	}
	return nil
}
