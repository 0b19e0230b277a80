package admission

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/algo"
)

// Lease is the lease of a call, and the names of the policies that it is of, in
// the order of its parts.
type Lease struct {
	algo.Lease
	Policies []string
	outer    *Lease // of a middleware further out
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
	lease, _ := ctx.Value(leaseKey{}).(*Lease)
	for ; lease != nil; lease = lease.outer {
		if len(policy) == 0 {
			return &lease.Lease
		}
		if i := slices.Index(lease.Policies, policy[0]); i >= 0 {
			return lease.Of(i)
		}
	}
	return new(algo.Lease)
}

// Of returns the lease of a policy. A single one may have parts of its own.
func (l *Lease) Of(i int) *algo.Lease {
	if len(l.Policies) == 1 {
		return &l.Lease
	}
	return l.Part(i)
}
