package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

type leaseKey struct{}

// LeaseFrom returns the lease of the call that ctx belongs to, for Settle and
// for what is remaining, if the interceptor was made with
// [WithLeaseInContext]; nil if there is none. Of several limits it is the
// innermost one's.
//
// The lease belongs to the handler's goroutine, and to the interceptor again
// when the handler returns.
func LeaseFrom(ctx context.Context) *algo.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*algo.Lease)
	return lease
}

// withLease puts a lease that is not yet acquired into the context.
func withLease(ctx context.Context) (context.Context, *algo.Lease) {
	lease := new(algo.Lease)
	return context.WithValue(ctx, leaseKey{}, lease), lease
}
