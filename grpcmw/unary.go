package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// UnaryServerInterceptor limits unary calls: it acquires from l, under the key
// that key gives the call, before the handler runs. [ServerOptions] installs it
// together with the interceptor for streams, so neither is forgotten.
//
// A denied call is answered with a status and exactly one trailer; see the
// package comment. After an admission with a Delay the interceptor sleeps first;
// an admission whose Delay would outlast the call's deadline becomes a denial
// and is refunded. The lease is released when the handler returns, panics or
// exits. A call that its client has canceled, or whose deadline has passed, ends
// untimed, whatever the handler made of it: a client must not be able
// to lower an adaptive limit.
//
// It takes every option for servers except those about streams. It panics if l
// or key is nil, and if an option does not fit.
func UnaryServerInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryServerInterceptor {
	return newInterceptor("UnaryServerInterceptor", onServer, l, key, opts).unary
}

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := call{ctx, info.FullMethod, req}
	if i.exempt.unary(c.method) {
		return handler(i.Unlimited(ctx), req)
	}
	ps, err := i.policies(c)
	switch {
	case err != nil:
		setPushback(ctx, err)
		return nil, err
	case ps == nil:
		return handler(i.Unlimited(ctx), req)
	case i.LeaseInContext:
		kept := new(algo.Lease)
		return i.serve(c, kept, kept, ps, handler)
	}
	var lease algo.Lease // stays on the stack
	return i.serve(c, &lease, nil, ps, handler)
}

// serve serves a call under a lease. kept is lease if its handler wants it, or else nil.
func (i *interceptor) serve(c call, lease, kept *algo.Lease, ps *policies, handler grpc.UnaryHandler) (any, error) {
	outcome := algo.Failed // unless the handler returns
	defer func() {
		if outcome == algo.Failed && c.ctx.Err() != nil {
			outcome |= algo.Untimed
		}
		lease.Release(outcome)
	}()
	inner, trailer, err := i.admit(c, lease, kept, ps)
	if err != nil {
		outcome = algo.Canceled
		setPushback(c.ctx, err)
		return nil, err
	}
	if trailer != nil {
		// The error says that the call is over; no client is left.
		_ = grpc.SetTrailer(c.ctx, trailer)
	}
	resp, err := handler(inner, c.msg)
	if outcome = i.outcome(c.ctx, ps, err); outcome == algo.Succeeded|algo.Untimed {
		outcome = algo.Failed | algo.Untimed // the client has gone: nobody gets the answer
	}
	return resp, err
}

// admit decides on a call. With a nil error it may start, with that context and trailer.
func (i *interceptor) admit(c call, lease, kept *algo.Lease, ps *policies) (context.Context, metadata.MD, error) {
	var room [admission.Few]algo.Request
	reqs, pass, err := ps.Try(c.ctx, c, lease, room[:])
	if pass && kept == nil && !i.Own.rateTrailers {
		return c.ctx, nil, nil
	}
	var v verdict // not on the stack of the handler, which may be deep
	ps.Admit(c.ctx, c, lease, &v, reqs, err)
	return i.admitted(c, kept, ps, &v)
}
