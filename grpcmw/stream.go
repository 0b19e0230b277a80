package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// StreamServerInterceptor limits streams, by default when they are opened:
// see [WithStreamMode] and [WithBackPressure]. What UnaryServerInterceptor says
// of calls holds for them too. Leases end with algo.Ignored: how long a stream
// lives says nothing about the server.
//
// A denied message ends the stream: the handler gets the denial from RecvMsg
// or SendMsg, and the client gets it whatever the handler returns.
//
// It takes every option for servers. It panics if l or key is nil, and if an
// option does not fit.
func StreamServerInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.StreamServerInterceptor {
	return newGate("StreamServerInterceptor", forStreams, l, key, opts).stream
}

func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if g.exempt.covers(info.FullMethod) {
		return handler(srv, ss)
	}
	s := &serverStream{ServerStream: ss, ctx: ss.Context(), gate: g, method: info.FullMethod}
	s.verdicts, s.outermost = verdictsOf(s.ctx)
	if s.outermost {
		s.ctx = context.WithValue(s.ctx, verdictsKey{}, s.verdicts)
	}
	err := s.run(srv, handler)
	if s.outermost && err != nil {
		s.verdicts.writeTo(ss)
	}
	return err
}

// run opens the stream, and runs the handler.
func (s *serverStream) run(srv any, handler grpc.StreamHandler) error {
	lease := new(algo.Lease)
	if s.gate.leaseInContext {
		s.ctx, lease = withLease(s.ctx)
	}
	outcome := algo.Ignored
	defer func() { lease.Release(outcome) }()
	if err := s.open(lease); err != nil {
		return s.deny(err, false)
	}
	if s.gate.rateTrailers {
		s.SetTrailer(s.gate.rateTrailer(&lease.Decision))
	}
	defer s.end()
	err := handler(srv, s)
	if d := s.denied(); d != nil {
		return d
	}
	if deniedFurtherIn(err) {
		outcome = algo.Canceled
	}
	return err
}

// open finds the key, once for the stream and its messages, and charges the
// opening if the mode says so.
func (s *serverStream) open(lease *algo.Lease) error {
	g := s.gate
	key, v, err := g.identify(s.ctx, s.method)
	if err != nil || v != charge {
		return g.unasked(s.ctx, s.method, v, err)
	}
	s.limited, s.key = true, key
	if !g.mode.has(OnOpen) {
		return nil
	}
	return g.charge(s.ctx, lease, &ask{method: s.method, key: key, n: g.weigh(s.ctx, s.method, nil)})
}
