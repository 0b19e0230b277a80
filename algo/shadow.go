package algo

import (
	"context"
	"errors"
)

// Shadow runs l for show: it decides and charges as ever, but everything is
// admitted at once. It is how a new limit is tried on live traffic.
//
// Where l would have denied or delayed, Source is SourceShadowed, and the decision
// shows what would have been: Reason is that of the denial, and RetryAfter how
// long the request would have been put off. Allowed is true and Delay 0 all the
// same. Where l admits at once, its decision stands as it is.
//
// A request that l cannot decide because its backend failed is admitted with
// Source SourceShadowed and no limit: a limit on trial must not fail anybody. Only a
// negative cost stays an error. The lease is that of l; a denied request has
// charged nothing and has nothing to release. Shadow an in-flight limit only if
// it has no queue: while a request waits there, it waits.
//
// A peek, n = 0, is SourceShadowed whatever it shows: nobody should act on it.
//
// It panics if l is nil.
func Shadow(l Limiter) Limiter {
	mustLimiter(l, "Shadow")
	return &shadow{l}
}

type shadow struct{ limiter Limiter }

// Acquire asks the limiter, and admits.
func (s *shadow) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	lease, err = s.limiter.Acquire(ctx, key, n)
	if err != nil {
		lease = Lease{}
	}
	return lease, lease.shadow(n, err)
}

func (s *shadow) acquireIn(p *pass, lease *Lease, key string, n int64) error {
	err := p.acquire(s.limiter, lease, key, n)
	if err != nil {
		*lease = Lease{}
	}
	return lease.shadow(n, err)
}

func (s *shadow) askIn(p *pass, d *Decision, key string, n int64) error {
	err := p.ask(s.limiter, d, key, n)
	return d.shadow(n, err)
}

// shadow turns a decision or its error into an admission.
func (d *Decision) shadow(n int64, err error) error {
	switch {
	case errors.Is(err, ErrCost):
		return err
	case err != nil:
		*d = Decision{Allowed: true, Source: SourceShadowed}
	case !d.Allowed || n == 0:
		d.Allowed, d.Source = true, SourceShadowed
	case d.Delay > 0:
		d.Source, d.RetryAfter, d.Delay = SourceShadowed, d.Delay, 0
	}
	return nil
}

// Describe forwards to the limiter.
func (s *shadow) Describe() (Description, bool) { return Describe(s.limiter) }

// SetSpec applies spec to the limiter; see [Spec.Apply].
func (s *shadow) SetSpec(spec Spec) error { return spec.Apply(s.limiter) }

func (s *shadow) wrapped() Limiter { return s.limiter }
