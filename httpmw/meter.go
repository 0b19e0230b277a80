package httpmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// MeterFrom returns a Meter that goes on with the charge of the request to the policy
// of that name: the middleware has reserved an estimate, the handler charges what
// the response really takes, in blocks of at least block units:
//
//	meter := httpmw.MeterFrom(r.Context(), "tokens", 100)
//	defer meter.Close()
//
// It finds the lease as [LeaseFrom] does, so the middleware needs
// [WithLeaseInContext]. Elsewhere, and for requests that pass unlimited, the Meter
// admits everything and charges nothing. Close it before the handler returns; see
// [algo.MeterLease] and, for responses, [MeterWriter].
func MeterFrom(ctx context.Context, policy string, block int64) *algo.Meter {
	return admission.MeterFrom(ctx, policy, block)
}
