// Package early denies gRPC calls before their message is read and a goroutine is started for
// them:
//
//	grpc.NewServer(append(
//		grpcmw.ServerOptions(l, key),
//		grpc.InTapHandle(early.TapHandle(l, key)))...)
//
// Do not use it without the interceptors, with the same limiter and key: it charges nothing.
package early

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/keyfunc"
)

// TapHandle denies calls for which l has no room. It acquires 0 units, and peeks if none
// remain: it never charges, holds a slot or waits. If l cannot answer at once, or l or key
// fails, the interceptors decide.
//
// It runs in the goroutine that reads the connection, where waiting would delay
// all calls of that client. l therefore gets a context that has ended. The key
// function must not wait either.
//
// A call whose deadline is more than 10 s away is left to the interceptors:
// grpc-go (as of 1.85) keeps the timer of a call that a tap refuses, some 365
// bytes, until that deadline, and clients choose it.
//
// The answer is that of the interceptors, but without a trailer, which a
// tap handle cannot send. A client with a retry policy therefore uses its own
// backoff, and a grpc-go client (as of 1.85) whose attempts are used up may
// report UNKNOWN ("max retries exhausted ... EOF") instead of the answer. No event reports
// these denials: count the errors in a handle around this one.
//
// With [WithRegistered], methods that the server does not have pass to the
// server's own answer. Without it, the key function also sees methods that
// clients make up; no limiter stores anything for a key that is only peeked at.
//
// A limit on trial (algo.Shadow) denies nothing. Do not use it with a limiter that has a queue:
// a call that it denies might have been admitted later. It panics if l or key is nil.
func TapHandle(l algo.Limiter, key keyfunc.RPC, opts ...Option) tap.ServerInHandle {
	must(l != nil, "TapHandle: the limiter is nil")
	must(key != nil, "TapHandle: the key function is nil")
	h := &handle{options: []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Skip)}}
	if err := option.Apply(h, opts, Option.split, nil); err != nil {
		panic("early: TapHandle: " + err.Error())
	}
	h.deny = grpcmw.UnaryServerInterceptor(room{l}, func(ctx context.Context, method string) (string, error) {
		k, err := key(ctx, method)
		if err != nil {
			return "", keyfunc.ErrNoKey
		}
		return k, nil
	}, h.options...)
	return h.tap
}

// Option adjusts a tap handle. A value out of range is a panic that names the option.
type Option struct {
	name  string
	apply func(*handle) error
}

func (o Option) split() (string, func(*handle) error) { return o.name, o.apply }

type handle struct {
	options    []grpcmw.Option
	deny       grpc.UnaryServerInterceptor
	registered func() map[string]bool // nil: all
}

// WithRegistered gives a tap handle the methods of the server. services is
// called once, at the first call:
//
//	early.WithRegistered(func() map[string]grpc.ServiceInfo { return srv.GetServiceInfo() })
func WithRegistered(services func() map[string]grpc.ServiceInfo) Option {
	registered := sync.OnceValue(func() map[string]bool {
		methods := map[string]bool{}
		for service, info := range services() {
			for _, m := range info.Methods {
				methods["/"+service+"/"+m.Name] = true
			}
		}
		return methods
	})
	return Option{"WithRegistered", func(h *handle) error {
		h.registered = registered
		return option.NotNil(services != nil)
	}}
}

// WithExempt is [grpcmw.WithExempt].
func WithExempt(methods ...string) Option {
	exempt := grpcmw.WithExempt(methods...)
	return Option{"WithExempt", option.Sets(func(h *handle) { h.options = append(h.options, exempt) })}
}

func (h *handle) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if h.registered != nil && !h.registered()[method] || longDeadline(ctx) {
		return ctx, nil
	}
	_, err := h.deny(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, pass)
	return ctx, err
}

func pass(context.Context, any) (any, error) { return nil, nil }

// room is a limiter that admits what it has room for, and all that it knows nothing about.
type room struct{ algo.Limiter }

// Unwrap returns the limiter, for its description.
func (r room) Unwrap() []algo.Limiter { return []algo.Limiter{r.Limiter} }

func (r room) Acquire(ctx context.Context, key string, _ int64) (algo.Lease, error) {
	ctx = noTime{ctx}
	lease, err := r.Limiter.Acquire(ctx, key, 0)
	lease.Release(algo.Canceled) // does nothing, unless l does not know peeks
	if err == nil && lease.InForce() && (!lease.Allowed || lease.Remaining < 1) {
		if d, err := algo.Peek(ctx, r.Limiter, key, 1); err == nil && !d.Allowed { // says why
			return algo.NewLease(d, nil, algo.Handle{}), nil
		}
	}
	return algo.NewLease(algo.Decision{Allowed: true}, nil, algo.Handle{}), nil
}

// maxRefusedDeadline is how long a refused call may stay in memory.
const maxRefusedDeadline = 10 * time.Second

// longDeadline reports whether refusing the call would keep it for too long.
func longDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) > maxRefusedDeadline
}

// noTime is a context with the values of another, whose time is over: a limiter
// does not wait with it.
type noTime struct{ context.Context }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (noTime) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
func (noTime) Done() <-chan struct{}       { return closed }
func (noTime) Err() error                  { return context.Canceled }

// must panics unless ok: a server that is wired wrongly must not start.
func must(ok bool, what string) {
	if !ok {
		panic("early: " + what)
	}
}
