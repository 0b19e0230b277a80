package algo

import (
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// SmoothBursty lets every request start as soon as the debt of earlier ones
// has drained; its own cost delays the requests after it. It is Guava's
// RateLimiter.create(rate).
//
// An idle limiter saves permits, one second's worth or as many as [Burst] sets.
// A request of n permits takes saved ones first; the permits beyond them do not
// delay the request itself but the next one. So a request waits only for the
// debt of earlier requests, and a request of any size starts at once when there
// is no debt. [MaxWait] is the longest wait of a request:
//
//	Guava's tryAcquire(n)          MaxWait(0), the default
//	Guava's tryAcquire(n, timeout) MaxWait(timeout)
//	Guava's acquire(n)             MaxWait(Forever)
//	a cache of ratio x             MaxWait of x times one second
//
// The Delay of an admission is the time for which the caller has to sleep, as
// acquire would. As in Guava nothing is saved at first: saving begins when the
// limiter is made, for all keys alike.
//
// Bound: in any window of length w at most B + rate*w + n units start, B being
// the saved permits and n the largest cost, for any clock readings and any
// number of goroutines, as long as no admission is canceled or settled to less
// while later ones wait. RetryAfter is exact. Costs above a year's worth are
// denied with reason Never.
//
// The savings are kept as time, so SetRate leaves debts unchanged and scales
// the saved permits, and their maximum, with the rate. Remaining is the number
// of single permits that could start at once, one more than are saved when
// there is no debt; Limit is its maximum.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent.
//
// Do not use it where callers choose the cost: a request for a million permits
// starts at once, and delays all later requests. Bound n where it comes from,
// or use the [TokenBucket], where every request waits for its own cost.
type SmoothBursty struct {
	keyed[int64, struct{}]
	rated[int64, struct{}]
}

// NewSmoothBursty makes a limiter with the options [Burst] (the permits that
// may be saved at the current rate, 0 or more; default: one second of any
// rate), [MaxWait], [MaxKeys] and [DenyNew]. The error names the field and the
// invalid value.
func NewSmoothBursty(r Rate, opts ...Option) (*SmoothBursty, error) {
	return construct(&smoothBursty, Spec{Rate: r}, opts, newSmoothBursty)
}

var smoothBursty = kind{"smooth-bursty", "smooth bursty", []string{"Burst", "MaxWait", "MaxKeys", "DenyNew"}}

func newSmoothBursty(s Spec) (*SmoothBursty, error) {
	l := new(SmoothBursty)
	if err := initBucket(&l.keyed, &l.rated, &smoothBursty, s, payForward); err != nil {
		return nil, err
	}
	// Nothing is saved at the first reading of the clock.
	g := l.limit.Load().decider.(*decide.GCRA)
	l.store.SetInitial(g.Empty(keystore.TicksPerNano))
	return l, nil
}

// payForward makes a bucket that saves permits, for one second by default.
func payForward(s Spec, burstAt Rate) (*decide.GCRA, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst, burstAt = 1, PerSecond(1)
	}
	return decide.NewSmoothBursty(s.Rate.local(), burst, burstAt.local(), s.MaxWait)
}

// SetBurst changes how many permits may be saved while the limiter runs. Keys
// keep their spent units.
func (l *SmoothBursty) SetBurst(n int64) error { return l.setBurst(n) }
