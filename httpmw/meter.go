package httpmw

import (
	"context"

	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/warning"
)

// MeterFrom returns a Meter that goes on with the charge of the request to the policy
// of that name: the middleware has reserved an estimate, the handler charges the
// actual cost of the response, in blocks of at least block units:
//
//	meter := httpmw.MeterFrom(r.Context(), "tokens", 100)
//	defer meter.Close()
//
// It finds the lease as [LeaseFrom] does, so the middleware needs
// [WithLeaseInContext], and a name that no policy has is logged. Requests that pass
// unlimited, or have no policy of that name, are not charged: the Meter admits everything.
// Nor are those without a lease in their context, which is logged once with the code
// httpmw.meter_without_lease. Close it before the handler returns; see [meter.Continue]
// and, for responses, package metered.
func MeterFrom(ctx context.Context, policy string, block int64) *meter.Meter {
	return admission.MeterFrom(ctx, policy, block, &warnUnknown)
}

var warnUnknown = admission.Unknown{
	Lease: &warning.Once{
		Code:    "httpmw.meter_without_lease",
		Message: "httpmw: MeterFrom found no lease in the context, so the response is not charged: give the middleware WithLeaseInContext, and MeterFrom the context of the request",
	},
	Policy: &warning.Once{
		Code:    "httpmw.unknown_policy",
		Message: "httpmw: LeaseFrom or MeterFrom asked for a policy that no middleware around the request has, so nothing is settled or charged: correct the name, and give its middleware WithLeaseInContext",
	},
}
