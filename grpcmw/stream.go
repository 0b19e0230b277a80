package grpcmw

import (
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
	s := newServerStream(g, ss, info.FullMethod)
	err := s.run(srv, handler)
	if s.outermost && err != nil {
		s.pushbacks.writeTo(ss)
	}
	return err
}
