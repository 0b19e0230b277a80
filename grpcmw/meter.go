package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// MeterFrom returns a Meter that goes on with the charge of the call to the policy of
// that name: the interceptor has reserved an estimate, the handler charges what its
// messages really take, in blocks of at least block units:
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
// [WithLeaseInContext]. Elsewhere, and for calls that pass unlimited, the Meter
// admits everything and charges nothing. Close it before the handler returns; see
// [algo.MeterLease].
func MeterFrom(ctx context.Context, policy string, block int64) *algo.Meter {
	return admission.MeterFrom(ctx, policy, block)
}
