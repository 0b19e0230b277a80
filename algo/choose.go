package algo

import (
	"context"
	"fmt"
	"sync/atomic"
)

// ByKey hands each request to the limiter that choose returns for it: tiers,
// or limits of their own for some keys. [Overrides] is a ready-made choice.
//
// A request for which choose returns nil is an error, [ErrRequest]: neither an
// outage nor unlimited by accident. Return [Unlimited] to say that a key is not
// limited. choose runs on every request and must be safe for concurrent use;
// it should return limiters that it keeps, because a new one knows nothing of
// what was spent.
//
// [Describe] cannot tell, because the answer depends on the key. ByKey panics
// if choose is nil.
func ByKey(choose func(ctx context.Context, key string) Limiter) Limiter {
	if choose == nil {
		panic("algo: ByKey: the function is nil")
	}
	return byKey(choose)
}

type byKey func(ctx context.Context, key string) Limiter

func (f byKey) choose(ctx context.Context, key string) (Limiter, error) {
	if l := f(ctx, key); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: ByKey chose no limiter", ErrRequest)
}

// Acquire forwards to the limiter of the key.
func (f byKey) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	return acquireChosen(ctx, f, key, n)
}

// acquireChosen is the Acquire of every chooser.
func acquireChosen(ctx context.Context, c chooser, key string, n int64) (Lease, error) {
	l, err := c.choose(ctx, key)
	if err != nil {
		return Lease{}, err
	}
	return l.Acquire(ctx, key, n)
}

// Switch turns a limiter on and off while it runs; see [NewSwitch].
type Switch struct {
	limiter Limiter
	off     atomic.Bool
}

// NewSwitch wraps l with a switch, which is on at first. It is for operators
// who must be able to take a limit away at once.
//
// What is decided while it is off is not charged; what was admitted before is
// released as ever. It panics if l is nil.
func NewSwitch(l Limiter) *Switch {
	mustLimiter(l, "NewSwitch")
	return &Switch{limiter: l}
}

// On lets the limiter decide.
func (s *Switch) On() { s.off.Store(false) }

// Off admits everything, with Source SourceOff, and leaves the limiter alone.
func (s *Switch) Off() { s.off.Store(true) }

// IsOn reports whether the limiter decides.
func (s *Switch) IsOn() bool { return !s.off.Load() }

func (s *Switch) choose(context.Context, string) (Limiter, error) {
	if s.off.Load() {
		return unlimited{}, nil
	}
	return s.limiter, nil
}

// Acquire forwards to the limiter, or admits.
func (s *Switch) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	return acquireChosen(ctx, s, key, n)
}

// Describe forwards to the limiter, whether it is on or off.
func (s *Switch) Describe() (Description, bool) { return Describe(s.limiter) }

// SetSpec applies spec to the limiter; see [Spec.Apply].
func (s *Switch) SetSpec(spec Spec) error { return spec.Apply(s.limiter) }

// Unlimited admits everything, with Source SourceOff.
func Unlimited() Limiter { return unlimited{} }

type unlimited struct{}

func (u unlimited) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = u.acquireIn(nil, &lease, key, n)
	return lease, err
}

func (unlimited) acquireIn(_ *pass, lease *Lease, _ string, n int64) error {
	return decided(&lease.Decision, Decision{Allowed: true, Source: SourceOff}, n)
}

func (unlimited) askIn(_ *pass, d *Decision, _ string, n int64) error {
	return decided(d, Decision{Allowed: true, Source: SourceOff}, n)
}

// refusing denies everything, for ever.
type refusing struct{}

func (b refusing) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = b.acquireIn(nil, &lease, key, n)
	return lease, err
}

func (refusing) acquireIn(_ *pass, lease *Lease, _ string, n int64) error {
	return decided(&lease.Decision, refusal, n)
}

func (refusing) askIn(_ *pass, d *Decision, _ string, n int64) error {
	return decided(d, refusal, n)
}

// refusal has a limit of 0, and a wait that does not end.
var refusal = Decision{Reason: Never, RetryAfter: Forever, NextAfter: Forever, ResetAfter: Forever}

// decided writes a decision that does not depend on the request.
func decided(to *Decision, d Decision, n int64) error {
	if n < 0 {
		return costError(n)
	}
	*to = d
	return nil
}
