package algo_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
)

// with returns opts and more, without writing to opts.
func with(opts []algo.Option, more ...algo.Option) []algo.Option {
	return append(append([]algo.Option(nil), opts...), more...)
}

func TestLeakyBucketConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewLeakyBucket(r, opts...)
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

// A pacer with as much slack as a bucket has burst, and no line.
func TestPacerConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewPacer(r, with(opts, algo.Slack(r.Count-1), algo.MaxQueue(0))...)
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

func TestNginxConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return newNginx(r, with(opts, algo.Burst(r.Count-1), algo.NoDelay())...)
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

// A limiter that has had the time to save its burst up. The kit spends at most
// 4 units at once.
func TestSmoothBurstyConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		l, err := newSmoothBursty(r, with(opts, algo.Burst(r.Count))...)
		time.Sleep(r.Period + time.Duration(r.Count))
		return l, err
	}, algotest.Bound{PayForward: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) + 4
	}})
}

func TestSmoothWarmingUpConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return newSmoothWarmingUp(r, r.Period/2, opts...)
	}, algotest.Bound{PayForward: true, Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) - r.Count + 4
	}})
}
