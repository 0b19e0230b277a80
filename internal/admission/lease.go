package admission

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

// Lease is the lease of a call, and the policies that it is of, in the order of its
// parts.
type Lease struct {
	algo.Lease
	Policies []Named
	outer    *Lease // of a middleware further out
}

// Named is the limiter of a policy.
type Named struct {
	Name    string
	Limiter algo.Limiter
}

type leaseKey struct{}

// WithLease puts a lease into a context. The lease may be acquired later.
func WithLease(ctx context.Context, lease *Lease) context.Context {
	lease.outer, _ = ctx.Value(leaseKey{}).(*Lease)
	return context.WithValue(ctx, leaseKey{}, lease)
}

// LeaseFrom returns the innermost lease in ctx, or the lease of the policy with
// that name; a zero Lease if there is none.
func LeaseFrom(ctx context.Context, policy ...string) *algo.Lease {
	if len(policy) > 0 {
		lease, _ := find(ctx, policy[0])
		return lease
	}
	if lease, _ := ctx.Value(leaseKey{}).(*Lease); lease != nil {
		return &lease.Lease
	}
	return new(algo.Lease)
}

// find returns the lease of a policy, and its limiter.
func find(ctx context.Context, policy string) (*algo.Lease, algo.Limiter) {
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	for ; lease != nil; lease = lease.outer {
		if i := slices.IndexFunc(lease.Policies, func(n Named) bool { return n.Name == policy }); i >= 0 {
			return lease.Of(i), lease.Policies[i].Limiter
		}
	}
	return new(algo.Lease), algo.Unlimited()
}

// Unlimited returns the context of a call that is meant to pass without a lease.
func Unlimited(ctx context.Context) context.Context {
	if ctx.Value(leaseKey{}) != nil {
		return ctx
	}
	return WithLease(ctx, new(Lease))
}

// MeterFrom goes on with the charge of a policy. It logs unmetered if ctx has no lease at
// all: then the call was not meant to be unlimited.
func MeterFrom(ctx context.Context, policy string, block int64, unmetered *warning.Once) *algo.Meter {
	if ctx.Value(leaseKey{}) == nil {
		unmetered.Log("")
	}
	lease, limiter := find(ctx, policy)
	return algo.MeterLease(limiter, lease, block)
}

// Of returns the lease of a policy. A single one may have parts of its own.
func (l *Lease) Of(i int) *algo.Lease {
	if len(l.Policies) == 1 {
		return &l.Lease
	}
	return l.Part(i)
}
