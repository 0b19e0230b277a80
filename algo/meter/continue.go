package meter

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

// Continue goes on with the charge of lease as a [Meter], which charges the
// work's use beyond it to l, in blocks of at least block units, 0 or more. l is
// the limiter that has granted the lease, and the charges are to the lease's key.
// Another part of the program, such as a middleware, releases the lease, and not
// before the Meter is closed. Release with [algo.Canceled] gives back the first charge
// alone, not the blocks after it.
//
// For a lease that charges nothing, because the request passed unlimited, the Meter
// admits everything and charges nothing. A denied lease makes a denied Meter.
func Continue(l algo.Limiter, lease *algo.Lease, block int64) *Meter {
	m := &Meter{Decision: lease.Decision, block: max(block, 0)}
	m.Delay = 0 // the acquirer of the lease has slept for it
	switch key, n, ok := lease.Charge(); {
	case ok:
		m.limiter, m.key, m.charged, m.last = l, key, n, hold{borrowed: lease, n: n}
	case lease.Allowed || lease.Reason == algo.Admitted:
		m.limiter, m.Allowed = algo.Unlimited(), true
	}
	return m
}

// From goes on with the charge of a request to the policy of that name: the adapter has
// reserved an estimate, the handler charges the actual cost, in blocks of at least block units:
//
//	m := meter.From(r.Context(), "tokens", 100)
//	defer m.Close()
//
// It finds lease and limiter as [algo.LeaseFrom] does, so httpmw and grpcmw need
// WithLeaseInContext, and a name that no policy has is logged. A request without that policy is
// not charged: the Meter admits everything. Nor is one without any lease in its context, which
// is logged once with the code algo.meter_without_lease. Close it before the handler returns;
// for responses of HTTP see package httpmw/metered.
func From(ctx context.Context, policy string, block int64) *Meter {
	l := algo.LimiterFrom(ctx, policy)
	if l == nil {
		warning.NoLease.Log("policy", policy)
		return Continue(l, new(algo.Lease), block)
	}
	return Continue(l, algo.LeaseFrom(ctx, policy), block)
}
