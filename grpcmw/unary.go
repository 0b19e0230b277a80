package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// ServerOptions limit a whole server, unary calls and streams together, with
// one limiter:
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(perClient, rpckey.PeerIP())...)
//
// The interceptors run after those that were given to grpc.NewServer earlier, and
// before later ones. Recovery from panics, authentication that the key depends
// on, and logging belong before them. Several limits are listed one after the
// other; the outer ones keep the charge of a call that an inner one denies. [Limits]
// charges all or none.
//
// ServerOptions takes every option for servers. It panics if l or key is nil,
// and if an option does not fit.
func ServerOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.ServerOption {
	i := newInterceptor(adapter, "ServerOptions", forStreams, l, key, opts)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(i.unary),
		grpc.ChainStreamInterceptor(i.stream),
	}
}

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
	return newInterceptor(adapter, "UnaryServerInterceptor", onServer, l, key, opts).unary
}

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if i.passesUnary(ctx, info.FullMethod) {
		return handler(i.Unlimited(ctx), req)
	}
	if i.LeaseInContext {
		ctx, lease := withLease(ctx)
		return i.serve(ctx, lease, req, info.FullMethod, handler)
	}
	var lease admission.Lease // stays on the stack
	return i.serve(ctx, &lease, req, info.FullMethod, handler)
}

func (i *interceptor) serve(ctx context.Context, lease *admission.Lease, req any, method string, handler grpc.UnaryHandler) (any, error) {
	outcome := algo.Failed // unless the handler returns
	defer func() { lease.Release(outcome) }()
	if err := i.decide(ctx, lease, method, req); err != nil {
		outcome = algo.Canceled
		setPushback(ctx, err)
		return nil, err
	}
	if i.rateTrailers {
		i.setRateTrailer(ctx, lease)
	}
	resp, err := handler(ctx, req)
	if outcome = i.handled(ctx, err); i.refundIf != nil {
		outcome = i.refunded(ctx, err, outcome)
	}
	return resp, err
}
