package algo

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/internal/warning"
)

// leased is a context with the lease of a request.
type leased struct {
	context.Context
	lease    *Lease
	limiters []Limiter
	policies []string
}

type leasedKey struct{}

// Value makes the lease found with one allocation, where context.WithValue takes two.
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
// [LimiterFrom] and package meter. It is for adapters: httpmw and grpcmw do it with
// WithLeaseInContext. limiters granted the parts of lease, in their order, under the policies
// of those names. Pass what [Resolve] returned, so that later charges go where the first one
// went. The slices are kept.
func WithLease(ctx context.Context, lease *Lease, limiters []Limiter, policies ...string) context.Context {
	return &leased{ctx, lease, limiters, policies}
}

// LeaseFrom returns the lease of the request with that context, to see the remaining units and to
// correct the cost once it is known:
//
//	algo.LeaseFrom(r.Context()).Settle(rows)
//	algo.LeaseFrom(r.Context(), "tokens").Settle(used)
//
// Of several adapters it is the lease of the innermost with WithLeaseInContext; with the name of a
// policy the lease of that policy, of any of them. On a stream of gRPC it is the lease of the opening.
//
// It is never nil: a zero Lease for a request that passes unlimited or without that policy. A name that
// no policy around the request has, in any plan, is logged once with the code algo.unknown_policy; so is
// a context without any lease, once a request has passed an adapter without WithLeaseInContext. Use the
// lease until the handler returns, and from one goroutine at a time.
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

// LimiterFrom returns the limiter that was chosen for the request under the policy of that
// name, for further charges; [Unlimited] for a request without that policy, as LeaseFrom has
// it, and nil if no adapter around it has WithLeaseInContext.
func LimiterFrom(ctx context.Context, policy string) Limiter {
	_, l := find(ctx, policy)
	return l
}

func find(ctx context.Context, policy string) (*Lease, Limiter) {
	innermost := leasedIn(ctx)
	for a := innermost; a != nil; a = leasedIn(a.Context) {
		switch i := slices.Index(a.policies, policy); {
		case i < 0:
		case len(a.policies) == 1: // its lease may have parts of its own
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
