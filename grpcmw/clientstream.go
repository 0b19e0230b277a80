package grpcmw

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// StreamClientInterceptor paces streams, as UnaryClientInterceptor does calls:
// by default their opening; with [WithStreamMode] their messages too. A message
// that cannot wait ends the stream, and its error is what SendMsg and RecvMsg
// return from then on. Leases end with algo.Ignored, when gRPC is done with the
// stream: as ever, the stream has to be read to its end or its context canceled.
//
// It takes WithStreamMode besides what UnaryClientInterceptor takes, and panics
// like that.
func StreamClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.StreamClientInterceptor {
	return newClientGate("StreamClientInterceptor", forClientStreams, l, key, opts).callStream
}

func (g *gate) callStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if g.exempt.covers(method) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := newClientStream(ctx, g, method)
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
	lease  algo.Lease // of the opening
}

func newClientStream(ctx context.Context, g *gate, method string) *clientStream {
	s := &clientStream{messages: messages{gate: g, method: method}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.stopped = func(error) { s.cancel() }
	return s
}

// Context is that of the transport's stream.
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
	if refused := s.refusal(); refused != nil {
		return refused // the reset that it has led to says less
	}
	return err
}

// done is called when the stream is over, by gRPC and by whoever sees it first.
func (s *clientStream) done(error) {
	s.once.Do(func() {
		s.end()
		s.lease.Release(algo.Ignored)
		s.cancel()
	})
}
