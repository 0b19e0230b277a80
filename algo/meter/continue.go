package meter

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

// Continue returns a [Meter] that continues the charge of lease: it charges further use to l, the
// limiter that granted the lease, under the lease's key, in blocks of at least block units, 0 or
// more. Another part of the program, such as a middleware, releases the lease after the Meter is
// closed. Release with [algo.Canceled] refunds only the first charge, not the later blocks.
//
// If the request passed unlimited, the Meter admits everything and charges nothing. A denied lease
// makes a denied Meter.
func Continue(l algo.Limiter, lease *algo.Lease, block int64) *Meter {
	m := &Meter{Decision: lease.Decision, block: max(block, 0)}
	m.Delay = 0 // the acquirer of the lease has slept
	switch key, n, ok := lease.Charge(); {
	case ok:
		m.limiter, m.key, m.charged, m.last = l, key, n, hold{borrowed: lease, n: n}
	case lease.Allowed || lease.Reason == algo.Admitted:
		m.limiter, m.Allowed = algo.Unlimited(), true
	}
	return m
}

// From continues the charge of a request to the named policy: the adapter has reserved an estimate,
// the handler charges the actual cost, in blocks of at least block units:
//
//	m := meter.From(r.Context(), "tokens", 100)
//	defer m.Close()
//
// It finds lease and limiter as [algo.LeaseFrom] does, so httpmw and grpcmw need
// WithLeaseInContext, and a name without a policy is logged. Without that policy, or without any
// lease in ctx (logged once with the code algo.meter_without_lease), the Meter admits everything
// and charges nothing. Close it before the handler returns; for responses of HTTP see package
// httpmw/metered.
func From(ctx context.Context, policy string, block int64) *Meter {
	l := algo.LimiterFrom(ctx, policy)
	if l == nil {
		warning.NoLease.Log("policy", policy)
		return Continue(l, new(algo.Lease), block)
	}
	return Continue(l, algo.LeaseFrom(ctx, policy), block)
}
