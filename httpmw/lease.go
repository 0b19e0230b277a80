package httpmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// LeaseFrom returns the lease of the request, so that the handler can see the
// remaining units and correct the cost once it is known:
//
//	httpmw.LeaseFrom(r.Context()).Settle(rows)
//
// Of several middlewares it is the lease of the innermost with
// [WithLeaseInContext]. With the name of a policy it is the lease of that policy,
// of any of those middlewares, to settle it by itself:
//
//	httpmw.LeaseFrom(r.Context(), "tokens").Settle(used)
//
// Elsewhere, for requests that pass unlimited, and under a name that no policy of the
// request has, it is a zero Lease, never nil; settling it does nothing. A name that no
// policy of the middlewares around the request has, in any plan, is logged once with the
// code httpmw.unknown_policy. Use the lease until the handler returns, and from one
// goroutine at a time. Release it, which is rarely needed, only while no other goroutine reads
// the body or writes the response.
func LeaseFrom(ctx context.Context, policy ...string) *algo.Lease {
	return admission.LeaseFrom(ctx, &warnUnknown, policy...)
}
