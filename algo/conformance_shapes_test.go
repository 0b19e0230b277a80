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
		return algo.NewNginx(r, with(opts, algo.Burst(r.Count-1), algo.NoDelay())...)
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}

// A limiter that has had the time to save its burst up. The kit spends at most
// 4 units at once.
func TestSmoothBurstyConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		l, err := algo.NewSmoothBursty(r, with(opts, algo.Burst(r.Count))...)
		time.Sleep(r.Period + time.Duration(r.Count))
		return l, err
	}, algotest.Bound{PayForward: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) + 4
	}})
}

func TestSmoothWarmingUpConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewSmoothWarmingUp(r, r.Period/2, opts...)
	}, algotest.Bound{PayForward: true, Strict: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) - r.Count + 4
	}})
}

func TestSRTCMConformance(t *testing.T) {
	runMarker(t, algo.Green, func(r algo.Rate, opts ...algo.Option) (algo.Marker, error) {
		return algo.NewSRTCM(r, r.Count, 7, opts...)
	})
}

func TestTRTCMConformance(t *testing.T) {
	runMarker(t, algo.Yellow, func(r algo.Rate, opts ...algo.Option) (algo.Marker, error) {
		return algo.NewTRTCM(algo.Per(1, r.Period), 1, r, r.Count, opts...)
	})
	runMarker(t, algo.Green, func(r algo.Rate, opts ...algo.Option) (algo.Marker, error) {
		return algo.NewTRTCM(r, r.Count, algo.Per(2*r.Count, r.Period), 2*r.Count, opts...)
	})
}

func TestRFC4115Conformance(t *testing.T) {
	runMarker(t, algo.Green, func(r algo.Rate, opts ...algo.Option) (algo.Marker, error) {
		return algo.NewRFC4115(r, r.Count, algo.PerSecond(5), 5, opts...)
	})
	runMarker(t, algo.Yellow, func(r algo.Rate, opts ...algo.Option) (algo.Marker, error) {
		return algo.NewRFC4115(r, r.Count, algo.PerSecond(5), 0, opts...)
	})
}

// runMarker runs the kit on a limiter over a marker that passes the rate's
// count at once, and the rate.
func runMarker(t *testing.T, pass algo.Color, make func(algo.Rate, ...algo.Option) (algo.Marker, error)) {
	t.Helper()
	t.Run(pass.String(), func(t *testing.T) {
		algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
			m, err := make(r, opts...)
			if err != nil {
				return nil, err
			}
			return algo.FromMarker(m, pass), nil
		}, algotest.Bound{Units: algotest.BurstPlusRate})
	})
}
