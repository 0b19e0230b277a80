package algo

import (
	"time"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// SmoothWarmingUp is a limiter that gets faster while it is used and cold
// again when it is not, for services that need time to reach full speed
// (caches to fill, connections to open). It is Guava's
// RateLimiter.create(rate, warmup).
//
// Cold, a permit costs [ColdFactor] times its cost at the rate; over the
// warm-up the cost falls to the cost at the rate, and an idle limiter is cold
// again after one warm-up. It starts cold. As with [SmoothBursty] a request
// waits only for the debt of earlier requests, at most [MaxWait], and its own
// debt delays the next one.
//
// Bound: in any window of length w at most rate*w + n permits start, n being the
// largest cost, for any clock readings and any number of goroutines, as long as no
// admission is canceled or settled to less while later ones wait. RetryAfter is
// exact. Costs above 2^31 - 1, or above half a year of the rate, are denied with
// reason Never.
//
// SetRate scales the stored permits with their maximum, so a limiter that was half warm
// stays half warm, and leaves debts unchanged.
//
// Limit is 1: Remaining is 0 while there is debt.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent, with
// time in 1/64 ns (microseconds run 4 % fast at 80 000 a second).
//
// Do not use it where arrivals at the rate must never be denied: while it is
// cold they are. See also SmoothBursty about costs that callers choose.
type SmoothWarmingUp struct {
	keyed[*decide.WarmupState, decide.WarmupState]
	rated[*decide.WarmupState, decide.WarmupState]
}

// NewSmoothWarmingUp makes a limiter with the options [ColdFactor] (default 3),
// [MaxWait], [MaxKeys] and [DenyNew]. A warm-up of 0 makes it a [SmoothBursty]
// that saves one second's worth; the longest is half a year, and so is
// MaxWait(Forever) here. The error names the field and the invalid value.
func NewSmoothWarmingUp(r Rate, warmup time.Duration, opts ...Option) (*SmoothWarmingUp, error) {
	return construct(&smoothWarmingUp, Spec{Rate: r, Warmup: warmup}, opts, newSmoothWarmingUp)
}

var smoothWarmingUp = kind{"smooth-warming-up", "smooth warming up", []string{"Warmup", "ColdFactor", "MaxWait", "MaxKeys", "DenyNew"}}

func newSmoothWarmingUp(s Spec) (*SmoothWarmingUp, error) {
	l := new(SmoothWarmingUp)
	if err := l.init(&l.keyed, &smoothWarmingUp, s, newValues(s, (*decide.WarmupState).Inherit), warmupLimit); err != nil {
		return nil, err
	}
	return l, nil
}

func warmupLimit(s Spec, _ Rate, _ decider[*decide.WarmupState], _ int64) (l limit[*decide.WarmupState], err error) {
	factor := s.ColdFactor
	if !s.Given("cold") {
		factor = 3
	}
	warmup := s.Warmup
	if warmup == 0 {
		warmup = 1 // to validate the others
	}
	p, err := decide.NewWarmup(s.Rate.local(), warmup, s.MaxWait, factor)
	if err != nil {
		return l, err
	}
	l.decider, l.window = p, keystore.ToDuration(p.Emission())
	if s.Warmup == 0 {
		g, err := payForward(s, s.Rate)
		if err != nil {
			return l, err
		}
		l.decider, l.window = decide.NewNoWarmup(g, keystore.TicksPerNano), g.FillTime()
	}
	return l, nil
}
