package algo

import (
	"context"
	"errors"
)

// Shadow evaluates and charges l, but admits every request at once, to try a new limit on live traffic.
//
// Source is [SourceTrial], and nothing acts on the decision: adapters show clients other limits only, and
// compositions answer with the limits in force. Trial is the reason with which l would have denied; RetryAfter is
// how long l would have delayed the request.
//
// A middleware or interceptor without an observer logs once, with the code algo.trial_unobserved, that nothing
// shows the decisions; if only the function of a [ByKey] knows l, when l would first deny.
//
// If l fails, the request is admitted with SourceTrial and no limit; only a negative cost stays an error. The lease
// is l's. An in-flight limit delays requests in its queue even on trial. Shadow panics if l is nil.
func Shadow(l Limiter) Limiter {
	mustLimiter(l, "Shadow")
	return &shadow{wrapping{l}}
}

type shadow struct{ wrapping }

func (s *shadow) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	lease, err = s.limiter.Acquire(ctx, key, n)
	if err != nil {
		lease = Lease{}
	}
	err = lease.shadow(err)
	return lease, err
}

// About describes the limiter, with Off.
func (s *shadow) About() Description {
	d := About(s.limiter)
	d.Off = true
	return d
}

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
