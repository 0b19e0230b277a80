package grpcmw

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
)

// serverStream is a stream whose messages may be charged.
type serverStream struct {
	grpc.ServerStream
	ctx       context.Context
	gate      *gate
	method    string
	key       string
	limited   bool // false: it is not limited, by any mode
	outermost bool // no other limiter of this package is further out
	verdicts  *verdicts

	mu      sync.Mutex // a goroutine may still receive when the handler returns
	inWork  algo.Lease // of the message that was received last
	ended   bool
	refused *denial // ended the stream
}

// Context carries what limiters further in, and the handler, look for.
func (s *serverStream) Context() context.Context { return s.ctx }

// RecvMsg charges the message after it has arrived.
func (s *serverStream) RecvMsg(m any) error {
	if !s.charges(PerRecv) {
		return s.ServerStream.RecvMsg(m)
	}
	s.finishMessage()
	if d := s.denied(); d != nil {
		return d
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	var lease algo.Lease
	defer lease.Release(algo.Ignored) // does nothing once it is handed over
	if err := s.admit(&lease, m); err != nil {
		return err
	}
	s.begin(&lease)
	return nil
}

// SendMsg charges the message before it is sent.
func (s *serverStream) SendMsg(m any) error {
	if !s.charges(PerSend) {
		return s.ServerStream.SendMsg(m)
	}
	if d := s.denied(); d != nil {
		return d
	}
	var lease algo.Lease
	defer lease.Release(algo.Ignored)
	if err := s.admit(&lease, m); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

func (s *serverStream) charges(part StreamMode) bool { return s.limited && s.gate.mode.has(part) }

func (s *serverStream) admit(lease *algo.Lease, m any) error {
	g := s.gate
	a := &ask{method: s.method, key: s.key, n: g.weigh(s.ctx, s.method, m), patience: g.patience}
	if err := g.charge(s.ctx, lease, a); err != nil {
		return s.deny(err, true)
	}
	return nil
}

// deny remembers a denial; other errors pass.
func (s *serverStream) deny(err error, begun bool) error {
	d, ok := err.(*denial)
	if !ok {
		return err
	}
	d.begun = begun
	s.verdicts.add(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = d
	}
	return d
}

// denied returns the denial that ended the stream, nil if there was none.
func (s *serverStream) denied() *denial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// begin keeps the lease of a received message while it is worked on. A message
// that arrives after the handler has returned has nobody to work on it.
func (s *serverStream) begin(lease *algo.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.inWork, *lease = *lease, algo.Lease{}
	}
}

func (s *serverStream) finishMessage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inWork.Release(algo.Ignored)
}

func (s *serverStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.inWork.Release(algo.Ignored)
}
