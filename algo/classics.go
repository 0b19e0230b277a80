package algo

import (
	"fmt"

	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// The algorithms whose constructors are in package classic, which describes them.
var (
	nginx           = kind{"nginx", "nginx", []string{"Burst", "DelayAfter", "NoDelay", "MaxKeys", "DenyNew"}, bucket{limitReq, false}}
	strict          = kind{"strict", "strict", []string{"Burst", "MaxKeys", "DenyNew"}, bucket{strictTokens, false}}
	smoothBursty    = kind{"smooth-bursty", "smooth bursty", []string{"Burst", "MaxWait", "MaxKeys", "DenyNew"}, bucket{payForward, true}}
	smoothWarmingUp = kind{"smooth-warming-up", "smooth warming up", []string{"Warmup", "ColdFactor", "MaxWait", "MaxKeys", "DenyNew"}, inValues[decide.WarmupState]{(*decide.WarmupState).Inherit, warmupLimit}}
)

// limitReq makes a bucket of DelayAfter + 1 units, and a queue for the rest of
// Burst.
func limitReq(s Spec, _ Rate) (*decide.GCRA, error) {
	after := s.DelayAfter
	if s.NoDelay {
		after = max(s.Burst, 0)
	}
	if s.NoDelay && s.Given("delay") {
		return nil, fmt.Errorf("delay after is %d, and NoDelay is given: want one of them", s.DelayAfter)
	}
	return decide.NewNginx(s.Rate.local(), s.Burst, after)
}

// strictTokens makes a bucket whose burst and refill together stay within the
// rate's count in any period.
func strictTokens(s Spec, _ Rate) (*decide.GCRA, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst = s.Rate.Count - s.Rate.Count/2
	}
	return decide.NewStrict(s.Rate.local(), burst)
}

// payForward makes a bucket that saves permits, for one second by default.
func payForward(s Spec, burstAt Rate) (*decide.GCRA, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst, burstAt = 1, PerSecond(1)
	}
	return decide.NewSmoothBursty(s.Rate.local(), burst, burstAt.local(), s.MaxWait)
}

func warmupLimit(s Spec, _ Rate, _ engine.Decider[*decide.WarmupState], _ *keystore.Clock) (l engine.Limit[*decide.WarmupState], err error) {
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
	l.Decider, l.Window = p, keystore.ToDuration(p.Emission())
	if s.Warmup == 0 {
		g, err := payForward(s, s.Rate)
		if err != nil {
			return l, err
		}
		l.Decider, l.Window = decide.NewNoWarmup(g, keystore.TicksPerNano), g.FillTime()
	}
	return l, nil
}
