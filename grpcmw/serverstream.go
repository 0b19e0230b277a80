package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
)

// serverStream is a stream as the handler and limiters further in see it.
type serverStream struct {
	grpc.ServerStream
	messages
	pushbacks *pushbacks
	outermost bool // no other limiter of this package is further out
}

// Context carries what limiters further in, and the handler, look for.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg charges the message after it has arrived.
func (s *serverStream) RecvMsg(m any) error { return s.receive(m, s.ServerStream.RecvMsg) }

// SendMsg charges the message before it is sent.
func (s *serverStream) SendMsg(m any) error { return s.send(m, s.ServerStream.SendMsg) }

func newServerStream(g *gate, ss grpc.ServerStream, method string) *serverStream {
	s := &serverStream{ServerStream: ss, messages: messages{gate: g, ctx: ss.Context(), method: method}}
	s.stopped = s.messageRefused
	s.pushbacks, s.outermost = pushbacksOf(s.ctx)
	if s.outermost {
		s.ctx = context.WithValue(s.ctx, pushbacksKey{}, s.pushbacks)
	}
	return s
}

// run opens the stream and runs the handler.
func (s *serverStream) run(srv any, handler grpc.StreamHandler) error {
	var lease *algo.Lease
	if s.gate.leaseInContext {
		s.ctx, lease = withLease(s.ctx)
	} else {
		lease = new(algo.Lease)
	}
	outcome := algo.Ignored
	defer func() { lease.Release(outcome) }()
	if err := s.open(lease); err != nil {
		s.note(err)
		return err
	}
	if s.gate.rateTrailers {
		s.SetTrailer(s.gate.rateTrailer(&lease.Decision))
	}
	defer s.end()
	err := handler(srv, s)
	if refused := s.refusal(); refused != nil {
		return refused // whatever the handler made of it
	}
	if deniedFurtherIn(err) {
		outcome = algo.Canceled
	}
	return err
}

// messageRefused notes a denial in the middle of the stream: what limiters
// further out have charged for it is not given back.
func (s *serverStream) messageRefused(err error) {
	if d := denialIn(err); d != nil {
		d.begun = true
	}
	s.note(err)
}

// note keeps what a denial tells the client; other errors tell it nothing.
func (s *serverStream) note(err error) {
	if d := denialIn(err); d != nil {
		s.pushbacks.add(d)
	}
}
