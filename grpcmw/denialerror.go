package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// DenialError returns the error of a handler for a call that l, a limit that the handler acquires
// from, has denied: with the status, details and pushback of [ServerOptions]. For an admission it
// returns nil and, with [WithRateTrailers], tells the client what is left.
//
//	lease, _ := exports.Acquire(ctx, user, rows)
//	if err := grpcmw.DenialError(ctx, exports, user, lease.Decision); err != nil {
//		return nil, err
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire, d its decision, and ctx the context of the call. Of several
// limits in one decision, pass one that denied and its part of algo.Lease.Parts. The zero Decision,
// which comes with an error, gives UNAVAILABLE. Return the error unchanged, before the work begins:
// [guard.FailuresOnly] around the handler then counts no failure. Charges of interceptors around the
// handler stay.
//
// DenialError takes [WithName] and WithRateTrailers, and panics as ServerOptions does. It takes some
// microseconds longer than the answer of an interceptor: against floods, limit before the handler too.
func DenialError(ctx context.Context, l algo.Limiter, key string, d algo.Decision, opts ...Option) error {
	i := makeInterceptor(configure("DenialError", forDenial, opts))
	known := func(call) (string, error) { return key, nil }
	ps := i.newPolicies(admission.NewPolicies(adapter, &i.Settings, l, known, "DenialError"))
	var v verdict
	ps.Decided(&v, key, d)
	_, trailer, err := i.admitted(call{ctx: ctx}, nil, ps, &v)
	if err == nil {
		_ = grpc.SetTrailer(ctx, trailer) // its error says that the call is over
		return nil
	}
	if p, ok := ctx.Value(pushbacksKey{}).(*pushbacks); ok { // the outermost limit of a stream sends them
		p.add(err)
	} else {
		setPushback(ctx, err)
	}
	return err
}
