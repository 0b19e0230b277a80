package hints

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/internal/class"
)

// priorityKey is the Priority field of RFC 9218, which calls have as metadata.
const priorityKey = "priority"

// PriorityOptions makes a server read the class of a call from its metadata "priority", in
// the form of RFC 9218 ("u=0" to "u=7"; see httpmw/hints.Priority), if trusted returns true.
// Pass them to grpc.NewServer before grpcmw.ServerOptions of an adaptive limiter with
// priorities:
//
//	options := append(hints.PriorityOptions(fromMesh), grpcmw.ServerOptions(l, rpckey.Global())...)
//
// The handler's context has the class (adaptive.ClassFrom), and [PriorityDialOptions]
// forward it. Only calls with the metadata run trusted. PriorityOptions panics if trusted is
// nil. Taps run earlier and see no class.
func PriorityOptions(trusted func(ctx context.Context) bool) []grpc.ServerOption {
	if trusted == nil {
		panic("hints: PriorityOptions: the function is nil")
	}
	classified := func(ctx context.Context) context.Context {
		if lines := metadata.ValueFromIncomingContext(ctx, priorityKey); len(lines) > 0 && trusted(ctx) {
			if c, ok := class.ParseField(lines); ok {
				return class.With(ctx, c)
			}
		}
		return ctx
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(classified(ctx), req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if ctx := classified(ss.Context()); ctx != ss.Context() {
				ss = &classifiedStream{ss, ctx}
			}
			return handler(srv, ss)
		}),
	}
}

type classifiedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *classifiedStream) Context() context.Context { return s.ctx }

// PriorityDialOptions make a client send the class of a call's context (from
// adaptive.WithClass, or from the call that is being served) in the metadata
// "priority". Calls with that metadata, or without a class, are sent unchanged.
func PriorityDialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoker(withPriority(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(withPriority(ctx), desc, cc, method, opts...)
		}),
	}
}

func withPriority(ctx context.Context) context.Context {
	c, ok := class.Lookup(ctx)
	if !ok {
		return ctx
	}
	if md, _ := metadata.FromOutgoingContext(ctx); len(md.Get(priorityKey)) > 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, priorityKey, c.Field())
}
