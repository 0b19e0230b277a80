package algo

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/internal/warning"
)

// leased is a context with a request's lease.
type leased struct {
	context.Context
	lease    *Lease
	limiters []Limiter
	policies []string
}

type leasedKey struct{}

// Value returns a lease with one allocation, where context.WithValue needs two.
func (a *leased) Value(key any) any {
	if key == (leasedKey{}) {
		return a
	}
	return a.Context.Value(key)
}

func leasedIn(ctx context.Context) *leased {
	a, _ := ctx.Value(leasedKey{}).(*leased)
	return a
}

// WithLease puts the lease of a request into the context of its work, for [LeaseFrom],
// [LimiterFrom] and package meter. It is for adapters: httpmw and grpcmw call it with
// WithLeaseInContext. limiters granted the parts of lease, in order, under the names in policies.
// Pass the results of [Resolve], so that later charges go to the limiters of the first ones.
// WithLease keeps the slices.
func WithLease(ctx context.Context, lease *Lease, limiters []Limiter, policies ...string) context.Context {
	return &leased{ctx, lease, limiters, policies}
}

// LeaseFrom returns the lease of the request with context ctx, to read the remaining units and to
// correct the cost once it is known:
//
//	algo.LeaseFrom(r.Context()).Settle(rows)
//	algo.LeaseFrom(r.Context(), "tokens").Settle(used)
//
// Of several adapters the innermost with WithLeaseInContext counts; given a policy's name, any that has
// this policy. On a gRPC stream it is the lease of its start.
//
// It is never nil, but a zero Lease for a request that is unlimited or lacks the policy. It logs once,
// with the code algo.unknown_policy, a name that no policy around the request has, in any plan, and a
// context without any lease after a request has passed an adapter without WithLeaseInContext. Use the
// lease until the handler returns, from one goroutine at a time.
func LeaseFrom(ctx context.Context, policy ...string) *Lease {
	if len(policy) > 0 {
		lease, l := find(ctx, policy[0])
		if l == nil && warning.Unkept.Load() {
			warning.UnknownPolicy.Log("policy", policy[0])
		}
		return lease
	}
	if a := leasedIn(ctx); a != nil {
		return a.lease
	}
	if _, around := warning.Lacks(ctx, ""); !around && warning.Unkept.Load() {
		warning.UnknownPolicy.Log("policy", "")
	}
	return new(Lease)
}

// LimiterFrom returns the limiter that the named policy chose for the request, for further charges.
// It is [Unlimited] for a request without that policy, and nil if no adapter around it has
// WithLeaseInContext.
func LimiterFrom(ctx context.Context, policy string) Limiter {
	_, l := find(ctx, policy)
	return l
}

func find(ctx context.Context, policy string) (*Lease, Limiter) {
	innermost := leasedIn(ctx)
	for a := innermost; a != nil; a = leasedIn(a.Context) {
		switch i := slices.Index(a.policies, policy); {
		case i < 0:
		case len(a.policies) == 1: // its lease may itself have parts
			return a.lease, a.limiters[0]
		default:
			return a.lease.Part(i), a.limiters[i]
		}
	}
	if lacks, around := warning.Lacks(ctx, policy); innermost == nil && !around {
		return new(Lease), nil
	} else if !lacks {
		warning.UnknownPolicy.Log("policy", policy)
	}
	return new(Lease), Unlimited()
}
