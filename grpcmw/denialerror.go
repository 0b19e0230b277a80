package grpcmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// DenialError is the error of a handler for a call that l denied in it: the status, details
// and pushback with which [ServerOptions] answers a call that is denied before it.
//
//	lease, err := exports.Acquire(ctx, user, rows)
//	if err != nil || !lease.Allowed {
//		return nil, grpcmw.DenialError(ctx, exports, user, lease.Decision)
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire, d its decision, and ctx the context of the call. Of several
// limits in one decision, pass one that denied and its part of algo.Lease.Parts. A decision
// that is no denial, such as the zero Decision beside an error, gives UNAVAILABLE, the status
// for a decision that could not be made. Return the error unchanged, before the work begins:
// it is then no failure for [guard.FailuresOnly] around the handler. Charges of interceptors
// around the handler stay.
//
// It takes [WithName], and panics as ServerOptions does. It costs some
// microseconds more than a denial of an interceptor: against floods, limit before the
// handler too.
func DenialError(ctx context.Context, l algo.Limiter, key string, d algo.Decision, opts ...Option) error {
	i := makeInterceptor(configure("DenialError", forDenial, opts))
	known := func(call) (string, error) { return key, nil }
	ps := i.newPolicies(admission.NewPolicies(adapter, &i.Settings, l, known, "DenialError"))
	var v verdict
	d.Allowed = false
	ps.Decided(&v, key, d)
	err := i.answer(call{ctx: ctx}, ps, &v, false)
	if p, ok := ctx.Value(pushbacksKey{}).(*pushbacks); ok { // the outermost limit of a stream writes them
		p.add(err)
	} else {
		setPushback(ctx, err)
	}
	return err
}
