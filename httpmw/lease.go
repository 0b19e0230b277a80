package httpmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

type leaseKey struct{}

// WithLeaseInContext puts the lease into the context of the request, for
// [LeaseFrom]. It is an option because it copies the request, which costs more
// than many a decision.
func WithLeaseInContext() Option {
	return Option{"WithLeaseInContext", func(c *config) { c.exposes = true }}
}

// LeaseFrom returns the lease under which the handler runs, so that it can see
// what remains and correct the cost once that is known:
//
//	httpmw.LeaseFrom(r.Context()).Settle(rows)
//
// Of several middlewares it is that of the innermost with
// [WithLeaseInContext]. Elsewhere, and for requests that pass unlimited, it is
// a zero Lease, never nil: settling it does nothing. Use it until the handler
// returns, and from one goroutine at a time.
func LeaseFrom(ctx context.Context) *algo.Lease {
	if l, ok := ctx.Value(leaseKey{}).(*algo.Lease); ok {
		return l
	}
	return new(algo.Lease)
}

// WithRefundIf gives the charge of a request back if refund is true for the
// status of its response: count failures only, or do not count them. A
// handler that panics before it has written a status counts as 500. Hijacked
// connections are not asked about.
//
// What comes back is what the charge still weighs, see [algo.Lease]. Do not
// refund statuses that clients can provoke at will at the expense of the
// server: such requests are then not limited.
//
// For a [Transport], refund is asked about the status of the server's answer.
func WithRefundIf(refund func(status int) bool) Option {
	require(refund != nil, "WithRefundIf", "the function is nil")
	return Option{"WithRefundIf", func(c *config) { c.refundIf = refund }}
}
