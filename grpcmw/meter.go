package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/warning"
)

// MeterFrom returns a Meter that goes on with the charge of the call to the policy of
// that name: the interceptor has reserved an estimate, the handler charges the actual
// cost of its messages, in blocks of at least block units:
//
//	meter := grpcmw.MeterFrom(stream.Context(), "tokens", 100)
//	defer meter.Close()
//	for each message {
//		d, err := meter.Reserve(ctx, tokensIn(message))
//		meter.Use(tokensIn(message))
//		if err := stream.Send(message); err != nil { ... }
//		if err != nil || !d.Allowed { break }
//	}
//
// It finds the lease as [LeaseFrom] does, so the interceptor needs
// [WithLeaseInContext], and a name that no policy has is logged. Calls that pass unlimited,
// or have no policy of that name, are not charged: the Meter admits everything. Nor are
// those without a lease in their context, which is logged once with the code
// grpcmw.meter_without_lease. Close it before the handler returns; see [meter.Continue].
func MeterFrom(ctx context.Context, policy string, block int64) *meter.Meter {
	return admission.MeterFrom(ctx, policy, block, &warnUnknown)
}

var warnUnknown = admission.Unknown{
	Lease: &warning.Once{
		Code:    "grpcmw.meter_without_lease",
		Message: "grpcmw: MeterFrom found no lease in the context, so the call is not charged: give the interceptor WithLeaseInContext, and MeterFrom the context of the call",
	},
	Policy: &warning.Once{
		Code:    "grpcmw.unknown_policy",
		Message: "grpcmw: LeaseFrom or MeterFrom asked for a policy that no interceptor around the call has, so nothing is settled or charged: correct the name, and give its interceptor WithLeaseInContext",
	},
}
