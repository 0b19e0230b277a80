package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// UnaryServerInterceptor limits unary calls: it asks l, under the key that key
// gives the call, before the handler runs. [ServerOptions] installs it together
// with its twin for streams, so that neither is forgotten.
//
// A denied call is answered with a status and exactly one trailer; see the
// package comment. An admission with a Delay is slept out first; one that would
// outlast the call's deadline is a denial, and given back. The lease is
// released when the handler returns, panics or exits.
//
// It takes every option for servers but those about streams. It panics if l or
// key is nil, and if an option does not fit.
func UnaryServerInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryServerInterceptor {
	return newGate("UnaryServerInterceptor", onServer, l, key, opts).unary
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if g.exempt.covers(info.FullMethod) {
		return handler(ctx, req)
	}
	if g.leaseInContext {
		ctx, lease := withLease(ctx)
		return g.serve(ctx, lease, req, info.FullMethod, handler)
	}
	var lease algo.Lease // stays on the stack
	return g.serve(ctx, &lease, req, info.FullMethod, handler)
}

func (g *gate) serve(ctx context.Context, lease *algo.Lease, req any, method string, handler grpc.UnaryHandler) (any, error) {
	outcome := algo.Failed // unless the handler returns
	defer func() { lease.Release(outcome) }()
	if err := g.admit(ctx, lease, method, req); err != nil {
		outcome = algo.Canceled
		g.tell(ctx, err)
		return nil, err
	}
	if g.rateTrailers {
		g.tellRate(ctx, &lease.Decision)
	}
	resp, err := handler(ctx, req)
	outcome = handled(ctx, err)
	return resp, err
}

// tell sets the trailer of a denied unary call.
func (g *gate) tell(ctx context.Context, err error) {
	if d := denialIn(err); d != nil {
		setPushback(ctx, d.pushback)
	}
}
