package grpcmw

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// DialOptions are what paces a whole client, unary calls and streams together,
// with one limiter:
//
//	conn, err := grpc.NewClient(addr, grpcmw.DialOptions(limiter, rpckey.FullMethod())...)
//
// The options and panics are those of [StreamClientInterceptor].
func DialOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.DialOption {
	g := newClientGate("DialOptions", forClientStreams, l, key, opts)
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(g.callUnary),
		grpc.WithChainStreamInterceptor(g.callStream),
	}
}

// UnaryClientInterceptor paces unary calls: a call that does not fit yet waits
// until it does. It fails at once, with RESOURCE_EXHAUSTED and a text that
// begins with "client side:", when its deadline or [WithMaxWait] is sooner, and
// with UNAVAILABLE when l denies for overload, which waiting does not cure.
//
// It works on calls, not on attempts: those that a retry policy adds are not
// paced. Keys come from what a client knows of a call: rpckey.FullMethod,
// rpckey.Service, rpckey.Context, rpckey.Global. Those that describe
// the other end of a server's connection find nothing here.
//
// l learns how the call went: answers that speak of the server's state
// (UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, INTERNAL, ...) are
// failures, other codes are answers like any other.
//
// It panics if l or key is nil, and if an option does not fit.
func UnaryClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryClientInterceptor {
	return newClientGate("UnaryClientInterceptor", onClient, l, key, opts).callUnary
}

// WithMaxWait bounds how long a client waits for its limiter, 0 or more; with 0
// it never waits for a call that its quota denies. The default is
// algo.Forever: as long as the deadline of the call allows. A Delay, with which
// the limiter itself admits, is not subject to it.
func WithMaxWait(most time.Duration) Option {
	return Option{"WithMaxWait", func(s *settings) error {
		s.maxWait = most
		if most < 0 {
			return fmt.Errorf("is %v, want 0 or more", most)
		}
		return nil
	}}
}

func (g *gate) callUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if g.exempt.covers(method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	var lease algo.Lease
	outcome := algo.Failed // unless the call returns
	defer func() { lease.Release(outcome) }()
	if err := g.admit(ctx, &lease, method, req); err != nil {
		outcome = algo.Canceled
		return err
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	outcome = answered(ctx, err)
	return err
}
