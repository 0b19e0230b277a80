package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// StreamServerInterceptor limits streams, by default when they are opened: see
// [WithStreamMode] and [WithBackPressure]. [UnaryServerInterceptor] describes the
// rest. Leases end untimed, because the duration of a stream does not reflect the
// server.
//
// A denied message ends the stream: the handler gets the denial from RecvMsg or
// SendMsg, and the client gets it even if the handler returns something else.
//
// It takes every option for servers. It panics if l or key is nil, and if an
// option does not fit.
func StreamServerInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.StreamServerInterceptor {
	return newInterceptor("StreamServerInterceptor", forStreams, l, key, opts).stream
}

func (i *interceptor) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := call{ctx: ss.Context(), method: info.FullMethod}
	ps, err := i.policies(c)
	if ps == nil && err == nil {
		return handler(srv, i.unlimitedStream(ss))
	}
	s := newServerStream(i, ps, ss, c)
	if err != nil {
		s.pushbacks.add(err)
	} else {
		err = s.run(srv, handler)
	}
	if s.outermost && err != nil {
		s.pushbacks.writeTo(ss)
	}
	return err
}

// serverStream is a stream as the handler and inner limiters get it.
type serverStream struct {
	grpc.ServerStream
	messages
	pushbacks *pushbacks
	outermost bool // no limiter of this package is around this one
}

// Context returns the context with the values for the handler and inner limiters.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg charges the message after it has arrived.
func (s *serverStream) RecvMsg(m any) error { return s.receive(m, s.ServerStream.RecvMsg) }

// SendMsg charges the message before it is sent.
func (s *serverStream) SendMsg(m any) error { return s.send(m, s.ServerStream.SendMsg) }

func newServerStream(i *interceptor, ps *policies, ss grpc.ServerStream, c call) *serverStream {
	s := &serverStream{ServerStream: ss, messages: messages{call: c, i: i, ps: ps}}
	s.stopped = s.messageRefused
	s.pushbacks, s.outermost = pushbacksOf(s.ctx)
	if s.outermost {
		s.ctx = context.WithValue(s.ctx, pushbacksKey{}, s.pushbacks)
	}
	return s
}

// run opens the stream and runs the handler.
func (s *serverStream) run(srv any, handler grpc.StreamHandler) error {
	lease := new(algo.Lease)
	outcome := algo.Failed | algo.Untimed
	defer func() { lease.Release(outcome) }()
	trailer, err := s.open(lease)
	if err != nil {
		s.pushbacks.add(err)
		return err
	}
	if trailer != nil {
		s.SetTrailer(trailer)
	}
	defer s.end()
	lease.AwaitClient(true) // until its release: the client chooses how long the stream lasts
	err = handler(srv, s)
	if refused := s.endReason(); refused != nil {
		return refused // whatever the handler made of it
	}
	if outcome = s.i.outcome(s.ctx, s.ps, err); outcome != algo.Canceled {
		outcome |= algo.Untimed
	}
	return err
}

// unlimitedStream is a stream that passes this limit.
func (i *interceptor) unlimitedStream(ss grpc.ServerStream) grpc.ServerStream {
	if !i.LeaseInContext {
		return ss
	}
	return &passingStream{ss, i.Unlimited(ss.Context())}
}

type passingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the context with the lease of outer limits, marked as having passed this one.
func (s *passingStream) Context() context.Context { return s.ctx }

// messageRefused marks a denial in the middle of the stream, after its work has begun.
func (s *serverStream) messageRefused(err error) {
	if d := denialIn(err); d != nil {
		d.begun = true
	}
	s.pushbacks.add(err)
}
