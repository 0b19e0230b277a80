package algo

import (
	"context"
	"errors"
)

// Shadow evaluates and charges l, but admits every request at once: a new limit on live traffic.
//
// Source is [SourceTrial], and nothing acts on the decision: adapters show clients other limits only,
// and compositions answer with the limits in force. Where l would have denied, Trial is the reason;
// where it would have denied or delayed, RetryAfter is how long it would have put the request off.
//
// A middleware or interceptor without an observer logs once that nothing shows the decisions, with
// the code algo.trial_unobserved: of an l in the function of a [ByKey] that does not list it, once that would deny.
//
// If l fails, the request is admitted with SourceTrial and no limit; only a negative cost stays an
// error. The lease is the lease of l. An in-flight limit delays requests in its queue even on trial. It
// panics if l is nil.
func Shadow(l Limiter) Limiter {
	mustLimiter(l, "Shadow")
	return &shadow{wrapping{l}}
}

type shadow struct{ wrapping }

// Acquire lets the limiter decide, and admits.
func (s *shadow) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	lease, err = s.limiter.Acquire(ctx, key, n)
	if err != nil {
		lease = Lease{}
	}
	err = lease.shadow(err)
	return lease, err
}

// About is about the limiter, with Off.
func (s *shadow) About() Description {
	d := About(s.limiter)
	d.Off = true
	return d
}

// Peek looks, and admits.
func (s *shadow) Peek(ctx context.Context, key string, n int64) (Decision, error) {
	d, err := Peek(ctx, s.limiter, key, n)
	err = d.shadow(err)
	return d, err
}

// shadow turns a decision or its error into an admission.
func (d *Decision) shadow(err error) error {
	switch {
	case errors.Is(err, ErrCost):
		return err
	case err != nil:
		*d = Decision{}
	case d.Delay > 0:
		d.RetryAfter, d.Delay = d.Delay, 0
	}
	d.Trial = max(d.Trial, d.Reason)
	d.Allowed, d.Reason, d.Source = true, Admitted, SourceTrial
	return nil
}
