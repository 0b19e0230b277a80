package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

type leaseKey struct{}

// LeaseFrom returns the lease under which the handler runs, so that it can see
// what remains and correct the cost once that is known:
//
//	grpcmw.LeaseFrom(ctx).Settle(rows)
//
// Of several limits on a call it is that of the innermost with
// [WithLeaseInContext]. Elsewhere, and for calls that pass unlimited, it is a
// zero Lease, never nil: settling it does nothing. Use it until the handler
// returns, and from one goroutine at a time. On a stream it is the lease of the
// opening.
func LeaseFrom(ctx context.Context) *algo.Lease {
	if lease, ok := ctx.Value(leaseKey{}).(*algo.Lease); ok {
		return lease
	}
	return new(algo.Lease)
}

// withLease puts a lease that is not yet acquired into the context.
func withLease(ctx context.Context) (context.Context, *algo.Lease) {
	lease := new(algo.Lease)
	return context.WithValue(ctx, leaseKey{}, lease), lease
}
