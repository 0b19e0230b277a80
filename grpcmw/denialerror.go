package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// DenialError is the error of a handler for a call that l denied in it: the status, details
// and pushback with which [ServerOptions] answers a call that is denied before it. It is nil
// for an admission, which with [WithRateTrailers] tells the client what is left.
//
//	lease, _ := exports.Acquire(ctx, user, rows)
//	if err := grpcmw.DenialError(ctx, exports, user, lease.Decision); err != nil {
//		return nil, err
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire, d its decision, and ctx the context of the call. Of several
// limits in one decision, pass one that denied and its part of algo.Lease.Parts. The zero Decision
// beside an error gives UNAVAILABLE, the status for a decision that could not be made. Return the
// error unchanged, before the work begins: it is then no failure for [guard.FailuresOnly] around
// the handler. Charges of interceptors around the handler stay.
//
// It takes [WithName] and WithRateTrailers, and panics as ServerOptions does. It costs some
// microseconds more than an answer of an interceptor: against floods, limit before the
// handler too.
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
	if p, ok := ctx.Value(pushbacksKey{}).(*pushbacks); ok { // the outermost limit of a stream writes them
		p.add(err)
	} else {
		setPushback(ctx, err)
	}
	return err
}
