package grpcmw

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// DialOptions pace a whole client, unary calls and streams together, with one
// limiter:
//
//	conn, err := grpc.NewClient(addr, grpcmw.DialOptions(limiter, rpckey.FullMethod())...)
//
// It takes the options of [StreamClientInterceptor] and panics in the same
// cases.
func DialOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.DialOption {
	i := newInterceptor(clientAdapter, "DialOptions", forClientStreams, l, key, opts)
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(i.callUnary),
		grpc.WithChainStreamInterceptor(i.callStream),
	}
}

// UnaryClientInterceptor paces unary calls: a call that does not fit yet waits
// until it does. It fails at once, with RESOURCE_EXHAUSTED and a text that
// begins with "client side:", when its deadline or [WithMaxWait] is sooner, and
// with UNAVAILABLE when l denies for overload, because waiting does not help
// then.
//
// It obeys the server: after RESOURCE_EXHAUSTED or UNAVAILABLE with RetryInfo or
// grpc-retry-pushback-ms, the next calls of the same key to the same target wait
// that long, at most a year. A call whose deadline or WithMaxWait is sooner fails
// at once, with RESOURCE_EXHAUSTED. No call is sent twice.
//
// It works on calls, not on attempts: those that a retry policy adds are not
// paced. Use key functions that work on a client: rpckey.FullMethod,
// rpckey.Service, rpckey.Context, rpckey.Global. Key functions for the
// peer of a server find nothing here.
//
// The outcome that l gets is Failed for codes that are about the server's state
// (UNAVAILABLE, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, INTERNAL, ...), and
// Succeeded for other codes.
//
// It panics if l or key is nil, and if an option does not fit.
func UnaryClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryClientInterceptor {
	return newInterceptor(clientAdapter, "UnaryClientInterceptor", onClient, l, key, opts).callUnary
}

func (i *interceptor) callUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if i.passesUnary(ctx, method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	var lease admission.Lease
	outcome := algo.Failed // unless the call returns
	defer func() { lease.Release(outcome) }()
	key, err := i.decideCall(ctx, cc, &lease, method, req)
	if err != nil {
		outcome = algo.Canceled
		return err
	}
	var header, trailer metadata.MD
	opts = append(slices.Clip(opts), grpc.Trailer(&trailer))
	if i.serverWait != nil {
		opts = append(opts, grpc.Header(&header))
	}
	err = invoke(ctx, method, req, reply, cc, opts...)
	outcome = answered(ctx, err)
	i.obey(hostOf(cc), key, err, header, trailer)
	return err
}

// StreamClientInterceptor paces streams, as UnaryClientInterceptor does calls:
// by default their opening; with [WithStreamMode] their messages too. A message
// that cannot wait ends the stream, and SendMsg and RecvMsg return its error
// from then on. Leases end untimed, when gRPC is done with the
// stream: the stream has to be read to its end or its context canceled, as gRPC
// requires anyway.
//
// It takes WithStreamMode and the options of UnaryClientInterceptor, and panics
// in the same cases.
func StreamClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.StreamClientInterceptor {
	return newInterceptor(clientAdapter, "StreamClientInterceptor", forClientStreams, l, key, opts).callStream
}

func (i *interceptor) callStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if i.passes(ctx, method) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := newClientStream(ctx, i, method)
	s.host = hostOf(cc)
	opened := false
	defer func() {
		if !opened {
			s.done(nil)
		}
	}()
	if err := s.open(&s.lease); err != nil {
		return nil, err
	}
	var err error
	s.ClientStream, err = streamer(s.ctx, desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.done))...)
	opened = err == nil
	if err != nil {
		i.obey(s.host, s.key, err, nil, nil)
		return nil, err
	}
	return s, nil
}

// clientStream is a stream as the caller sees it.
type clientStream struct {
	grpc.ClientStream
	messages
	cancel context.CancelFunc
	once   sync.Once
	lease  admission.Lease // of the opening
}

func newClientStream(ctx context.Context, i *interceptor, method string) *clientStream {
	s := &clientStream{messages: messages{interceptor: i, method: method}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.stopped = func(error) { s.cancel() }
	return s
}

// Context returns the context of the transport's stream.
func (s *clientStream) Context() context.Context { return s.ClientStream.Context() }

// SendMsg charges the message before it is sent.
func (s *clientStream) SendMsg(m any) error { return s.send(m, s.ClientStream.SendMsg) }

// RecvMsg charges the message after it has arrived.
func (s *clientStream) RecvMsg(m any) error {
	err := s.receive(m, s.ClientStream.RecvMsg)
	if err == nil {
		return nil
	}
	s.done(err)
	if refused := s.endReason(); refused != nil {
		return refused // the reset that it has led to says less
	}
	var header metadata.MD
	if s.interceptor.serverWait != nil {
		header, _ = s.Header() // which is known at the end of a stream
	}
	s.interceptor.obey(s.host, s.key, err, header, s.Trailer())
	return err
}

// done is called when the stream is over, by gRPC and by the first method that
// sees the end.
func (s *clientStream) done(error) {
	s.once.Do(func() {
		s.end()
		s.lease.Release(algo.Succeeded | algo.Untimed)
		s.cancel()
	})
}
