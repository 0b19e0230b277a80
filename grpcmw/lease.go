package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// LeaseFrom returns the lease of the call, so that the handler can see the
// remaining units and correct the cost once it is known:
//
//	grpcmw.LeaseFrom(ctx).Settle(rows)
//
// Of several limits on a call it is the lease of the innermost with
// [WithLeaseInContext]. With the name of a policy it is the lease of that policy,
// of any of those limits, to settle it by itself:
//
//	grpcmw.LeaseFrom(ctx, "tokens").Settle(used)
//
// Elsewhere, for calls that pass unlimited, and under a name that no policy of the call
// has, it is a zero Lease, never nil; settling it does nothing. A name that no policy of
// the interceptors around the call has, in any plan, is logged once with the code
// grpcmw.unknown_policy. Use the lease until the handler returns, and from one goroutine
// at a time. On a stream it is the lease of the opening.
func LeaseFrom(ctx context.Context, policy ...string) *algo.Lease {
	return admission.LeaseFrom(ctx, &warnUnknown, policy...)
}

// withLease puts the lease of an admission into the context; kept is nil if the handler does not
// want it.
func (i *interceptor) withLease(ctx context.Context, ps *policies, kept *admission.Lease, v *verdict) context.Context {
	if kept == nil {
		return ctx
	}
	kept.Policies = v.Named(ps.names)
	return admission.WithLease(ctx, kept)
}
