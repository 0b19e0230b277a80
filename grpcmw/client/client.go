// Package client paces the calls of a gRPC client by a limit, and by the waits that servers ask
// for:
//
//	conn, err := grpc.NewClient(addr, client.DialOptions(limiter, rpckey.FullMethod())...)
//
// It paces calls, not the attempts that a retry policy adds.
package client

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/pacing"
	"github.com/sluice-go/sluice/keyfunc"
)

// DialOptions returns the options that pace all unary calls and streams of a
// client with one limiter. It panics if l or key is nil.
func DialOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.DialOption {
	p := newPacer("DialOptions", l, key, opts)
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(p.unary),
		grpc.WithChainStreamInterceptor(p.stream),
	}
}

// UnaryClientInterceptor paces unary calls: a call waits until it fits. If its
// deadline is sooner, it fails at once with RESOURCE_EXHAUSTED and a text that
// begins with "client side:"; if l denies for overload, with UNAVAILABLE, because
// the end of an overload is unknown.
//
// It obeys the server: after RESOURCE_EXHAUSTED or UNAVAILABLE with RetryInfo or
// grpc-retry-pushback-ms, the next calls of the same key to the same target wait
// that long, at most a year, or fail at once with RESOURCE_EXHAUSTED if their
// deadline is sooner. It sends no call twice.
//
// Use key functions that work on a client: rpckey.FullMethod,
// rpckey.Service, rpckey.Context, rpckey.Global. Key functions for the
// peer of a server find nothing here.
//
// l gets the outcome Failed for codes that concern the server's state (UNAVAILABLE,
// RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED, INTERNAL, ...), and Succeeded for others.
//
// It panics if l or key is nil.
func UnaryClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryClientInterceptor {
	return newPacer("UnaryClientInterceptor", l, key, opts).unary
}

func (p *pacer) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if p.skip != nil && p.skip(ctx, method) {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	var lease algo.Lease
	outcome := algo.Failed // unless the call returns
	defer func() { lease.Release(outcome) }()
	c, err := p.admit(ctx, cc, method, req, &lease)
	if err != nil {
		outcome = algo.Canceled
		return err
	}
	var header, trailer metadata.MD
	opts = append(slices.Clip(opts), grpc.Trailer(&trailer))
	if p.serverWait != nil {
		opts = append(opts, grpc.Header(&header))
	}
	err = invoke(ctx, method, req, reply, cc, opts...)
	outcome = outcomeOf(ctx, err)
	p.obey(ctx, c, err, header, trailer)
	return err
}

// StreamClientInterceptor paces the opening of streams, as UnaryClientInterceptor does calls.
// To pace messages, wait with [algo.Wait] before SendMsg. Leases end untimed, when gRPC is
// done with the stream: read the stream to its end or cancel its context, as gRPC requires anyway.
//
// It panics if l or key is nil.
func StreamClientInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.StreamClientInterceptor {
	return newPacer("StreamClientInterceptor", l, key, opts).stream
}

func (p *pacer) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if p.skip != nil && p.skip(ctx, method) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := &stream{pacer: p}
	opened := false
	defer func() {
		if !opened {
			s.end(nil)
		}
	}()
	var err error
	if s.call, err = p.admit(ctx, cc, method, nil, &s.lease); err != nil {
		return nil, err
	}
	s.ClientStream, err = streamer(ctx, desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.end))...)
	opened = err == nil
	if err != nil {
		p.obey(ctx, s.call, err, nil, nil)
		return nil, err
	}
	return s, nil
}

// stream is a stream as the caller sees it.
type stream struct {
	grpc.ClientStream
	pacer *pacer
	call  pacing.Call
	once  sync.Once
	lease algo.Lease
}

// RecvMsg notices the end of the stream.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		return nil
	}
	s.end(nil)
	var header metadata.MD
	if s.pacer.serverWait != nil {
		header, _ = s.Header() // which is known at the end of a stream
	}
	s.pacer.obey(s.Context(), s.call, err, header, s.Trailer())
	return err
}

// end ends the lease. gRPC calls it, and so does the first method that notices the
// end of the stream.
func (s *stream) end(error) {
	s.once.Do(func() { s.lease.Release(algo.Succeeded | algo.Untimed) })
}

// outcomeOf returns the outcome of a call. A server that rejects an invalid request
// has succeeded.
func outcomeOf(ctx context.Context, err error) algo.Outcome {
	switch code := status.Code(err); {
	case err == nil:
		return algo.Succeeded
	case errors.Is(ctx.Err(), context.Canceled) || code == codes.Canceled:
		return algo.Failed | algo.Untimed
	case slices.Contains(aboutTheServer, code):
		return algo.Failed
	}
	return algo.Succeeded
}

// aboutTheServer lists the codes that concern the server's state, not the request.
var aboutTheServer = []codes.Code{codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted,
	codes.Internal, codes.Unavailable, codes.DataLoss}
