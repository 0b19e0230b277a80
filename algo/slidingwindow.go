package algo

import (
	"fmt"

	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// NewSlidingWindow makes a limiter that admits r.Count units in a moving window of r.Period. The
// options are [Cells] (default: two weighted counters), [MaxKeys] and [DenyNew]. The error names the
// field and the invalid value.
//
// By default it counts the current and the previous period of each key, and weighs the older count by
// the part that the window still covers, rounded up. Bound: fewer than twice the quota in any window
// of length period, and at most the quota in each period of the counters.
//
// With [Cells] it counts in c cells a period plus one, which all weigh in full. Bound: at most the
// quota in any window of length period. Units come back up to one c-th of the period late.
//
// A denial does not count; refunded units can be spent again as far as they still weigh.
//
// State is 64 bytes for each of up to 2.7 slots a key ([MaxKeys]; 187 MiB at most by default), and
// with Cells 8 bytes more for each cell of a slot that was used.
//
// Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains", 2017.
//
// Do not use it where steady traffic at exactly the rate must pass: rounding up denies a unit now and
// then. [NewTokenBucket] never does.
func NewSlidingWindow(r Rate, opts ...Option) (*RateLimiter, error) {
	return slidingWindow.construct(Spec{Rate: r}, opts)
}

var slidingWindow = kind{"sliding-window", "sliding window", []string{"Cells", "MaxKeys", "DenyNew"}, inValues[decide.Counters]{(*decide.Counters).Inherit, slidingWindowLimit}}

const maxCells = 1024

func slidingWindowLimit(s Spec, _ Rate, old engine.Decider[*decide.Counters], clock *keystore.Clock) (l engine.Limit[*decide.Counters], err error) {
	l.Window = s.Rate.Period
	if !s.Given("cells") {
		p, err := decide.NewSlidingCounters(s.Rate.local(), keystore.TicksPerNano)
		if old != nil && err == nil {
			p = p.Succeed(old.(*decide.SlidingCounters), clock.Now())
		}
		l.Decider = p
		return l, err
	}
	if s.Cells < 1 || s.Cells > maxCells {
		return l, fmt.Errorf("cells is %d, want 1 to %d", s.Cells, maxCells)
	}
	p, err := decide.NewSlidingCells(s.Rate.local(), int(s.Cells), keystore.TicksPerNano)
	if old != nil && err == nil {
		p = p.Succeed(old.(*decide.SlidingCells))
	}
	l.Decider = p
	return l, err
}
