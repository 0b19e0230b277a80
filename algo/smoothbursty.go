package algo

import (
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// SmoothBursty lets every cost start as soon as earlier ones are paid for, and
// hands its own bill to those who come after: pay it forward. It is Guava's
// RateLimiter.create(rate).
//
// A limiter that is not used saves up permits, for one second's worth unless
// [Burst] says how many. A request of n permits takes saved ones first; what it
// takes beyond them delays not itself but the next caller. So a caller waits
// for earlier callers' debt only, and a request of any size starts at once when
// nothing is owed. [MaxWait] is how long a caller may have to wait:
//
//	Guava's tryAcquire(n)          MaxWait(0), the default
//	Guava's tryAcquire(n, timeout) MaxWait(timeout)
//	Guava's acquire(n)             MaxWait(Forever)
//	a cache of ratio x             MaxWait of x times one second
//
// The Delay of an admission is what the caller has to sleep, as acquire would.
// As in Guava nothing is saved at first: saving begins when the limiter is
// made, for all keys alike.
//
// Bound: in any window of length w at most B + rate*w + n units start, B being
// the saved permits and n the largest cost, for any clock readings and any
// number of goroutines, as long as no admission is canceled or settled to less
// while later ones wait. RetryAfter is exact. Costs above a year's worth are
// denied with reason Never.
//
// The savings are kept as time, so SetRate leaves debts as they are and
// scales the saved permits, and the most that may be saved, with the rate.
// Remaining counts the single permits that would start at once, one more than
// are saved when nothing is owed; Limit is the most that this can be.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent.
//
// Do not use it where callers choose the cost: one who asks for a million
// permits starts at once, and everyone else pays. Bound n where it comes from,
// or use the [TokenBucket], where each pays for himself.
type SmoothBursty struct {
	keyed[int64, struct{}]
	rated[int64, struct{}]
}

// NewSmoothBursty makes a limiter with the options [Burst] (the permits that
// may be saved at the rate of the moment, 0 or more; default: what any rate
// yields in one second),
// [MaxWait], [MaxKeys] and [OnFull]. The error names the field and the value
// that no limit can keep.
func NewSmoothBursty(r Rate, opts ...Option) (*SmoothBursty, error) {
	return construct(&smoothBursty, Spec{Rate: r}, opts, newSmoothBursty)
}

var smoothBursty = kind{"smooth-bursty", "smooth bursty", []string{"Burst", "MaxWait", "MaxKeys", "OnFull"}}

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

// SetBurst changes how many permits may be saved while the limiter runs. What
// keys have spent stays spent.
func (l *SmoothBursty) SetBurst(n int64) error { return l.setBurst(n) }
