package admission

import (
	"context"
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/warning"
)

// Lease is the lease of a call, and the policies that it is of, in the order of its
// parts.
type Lease struct {
	*algo.Lease
	Policies []Named
	outer    *Lease // of a middleware further out
	own      algo.Lease
}

// NewLease returns a Lease with an algo.Lease of its own.
func NewLease() *Lease {
	l := new(Lease)
	l.Lease = &l.own
	return l
}

type (
	leaseKey struct{}
	// passedKey marks the context of a call that passes some limit by intention.
	passedKey struct{}
)

// Unknown is the log line of an adapter about names that have no lease.
type Unknown struct {
	Lease  *warning.Once // a context has no lease at all
	Policy *warning.Once // no policy around the call has the name
}

// WithLease puts a lease into a context.
func WithLease(ctx context.Context, lease *Lease) context.Context {
	lease.outer, _ = ctx.Value(leaseKey{}).(*Lease)
	return context.WithValue(ctx, leaseKey{}, lease)
}

// LeaseFrom returns the innermost lease in ctx, or the lease of the policy with
// that name; a zero Lease if there is none.
func LeaseFrom(ctx context.Context, unknown *Unknown, policy ...string) *algo.Lease {
	if len(policy) > 0 {
		lease, _ := find(ctx, unknown, policy[0])
		return lease
	}
	if lease, _ := ctx.Value(leaseKey{}).(*Lease); lease != nil {
		return lease.Lease
	}
	return new(algo.Lease)
}

// find returns the lease of a policy, and its limiter. It logs unknown.Policy if the name
// must be a mistake.
func find(ctx context.Context, unknown *Unknown, policy string) (*algo.Lease, algo.Limiter) {
	innermost, _ := ctx.Value(leaseKey{}).(*Lease)
	for lease := innermost; lease != nil; lease = lease.outer {
		if i := slices.IndexFunc(lease.Policies, func(n Named) bool { return n.Name == policy }); i >= 0 {
			return lease.Of(i), lease.Policies[i].Limiter
		}
	}
	if innermost != nil && unknown.Policy.Pending() && !lacksOnPurpose(ctx, innermost, policy) {
		unknown.Policy.Log("policy=" + strconv.Quote(policy))
	}
	return new(algo.Lease), algo.Unlimited()
}

// lacksOnPurpose reports whether a call may lack a policy by intention: it passes a limit
// whose names are not known, or another plan has the policy, or a key is missing.
func lacksOnPurpose(ctx context.Context, lease *Lease, policy string) bool {
	if ctx.Value(passedKey{}) != nil {
		return true
	}
	for ; lease != nil; lease = lease.outer {
		if len(lease.Policies) == 0 || lease.Policies[0].names.has(policy) {
			return true
		}
	}
	return false
}

// Unlimited returns the context of a call that is meant to pass this limit.
func (s *Settings[C]) Unlimited(ctx context.Context) context.Context {
	switch {
	case !s.LeaseInContext:
		return ctx
	case ctx.Value(leaseKey{}) != nil:
		return context.WithValue(ctx, passedKey{}, true)
	}
	return WithLease(ctx, NewLease())
}

// MeterFrom goes on with the charge of a policy. It logs unknown.Lease if ctx has no lease
// at all: then the call was not meant to be unlimited.
func MeterFrom(ctx context.Context, policy string, block int64, unknown *Unknown) *meter.Meter {
	if ctx.Value(leaseKey{}) == nil {
		unknown.Lease.Log("")
	}
	lease, limiter := find(ctx, unknown, policy)
	return meter.Continue(limiter, lease, block)
}

// Of returns the lease of a policy. A single one may have parts of its own.
func (l *Lease) Of(i int) *algo.Lease {
	if len(l.Policies) == 1 {
		return l.Lease
	}
	return l.Part(i)
}
