package algo

import (
	"context"
	"errors"
)

// Shadow evaluates and charges l, but admits every request at once. It tries a
// new limit on live traffic.
//
// Source is [SourceTrial], so that nothing acts on the decision: adapters do not show
// the limit to clients, and compositions answer with the limits in force. Where l would
// have denied the request, Trial is the reason of the denial; where l would have denied
// or delayed it, RetryAfter is how long l would have put it off. Allowed is true and Delay
// 0. A peek, n = 0, looks the same.
//
// If l fails, because its backend is unavailable, the request is admitted with
// SourceTrial and no limit: a shadowed limit never fails a request. Only a
// negative cost stays an error. The lease is the lease of l; a denied request
// was not charged and has nothing to release. An in-flight limit with a queue
// delays requests even when shadowed, while they wait in its queue.
//
// It panics if l is nil.
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
