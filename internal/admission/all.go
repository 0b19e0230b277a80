package admission

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Candidate is an attempt and its policy.
type Candidate[C any] struct {
	*Policy[C]
	Attempt
}

// AcquireAll is Policy.Acquire for several policies on one call: all are charged
// or none, and the result holds for all. reqs are the requests of all, whose
// keys and costs are known. parts are the decisions of the single policies, nil
// after an error.
func AcquireAll[C any](ctx context.Context, lease *algo.Lease, all []Candidate[C], reqs []algo.Request) (parts []algo.Decision, r Result) {
	first := &all[0]
	if first.Observe != nil {
		first.begin()
	}
	var err error
	acquire := func(ctx context.Context) (algo.Lease, error) { return algo.AcquireAll(ctx, reqs...) }
	if first.MaxWait > 0 {
		err = waitForQuota(algo.Tentative(ctx), lease, &first.Attempt, first.Limiter, acquire)
	} else {
		*lease, err = acquire(ctx)
	}
	delay := lease.Delay
	if err == nil {
		parts = partsOf(lease, len(all))
	}
	r = first.conclude(ctx, lease, &first.Attempt, err)
	if first.Observe != nil {
		first.end()
	}
	for i := range all {
		a := &all[i].Attempt
		a.Start, a.at, a.Err, a.Cause = first.Start, first.at, first.Err, first.Cause
		if delay > 0 && parts != nil {
			all[i].waited(&parts[i], delay, lease.Allowed)
		}
	}
	return parts, r
}

// partsOf returns the decision of each of n policies. A single one has no
// parts, or the parts of the composition that is its limiter.
func partsOf(lease *algo.Lease, n int) []algo.Decision {
	if n == 1 {
		return []algo.Decision{lease.Decision}
	}
	return lease.Parts()
}

// waited applies the delay of the whole admission to d, the decision of one
// policy.
func (c *Candidate[C]) waited(d *algo.Decision, delay time.Duration, admitted bool) {
	switch {
	case admitted:
		elapse(d, delay)
	case d.Delay == delay:
		deny(d, delay)
	case d.Delay == 0: // its charge was given back
		d.Remaining = min(d.Remaining+c.Attempt.Cost, d.Limit)
	}
}
