// Package early denies gRPC calls before the server reads their message and starts a goroutine:
//
//	grpc.NewServer(append(
//		grpcmw.ServerOptions(l, key),
//		grpc.InTapHandle(early.TapHandle(l, key)))...)
//
// It charges nothing: use it only together with the interceptors, with the same limiter and key.
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
// all calls of that client. l therefore gets a context that has ended, and key
// must not wait either.
//
// It leaves a call whose deadline is more than 10 s away to the interceptors,
// because grpc-go (as of 1.85) keeps the timer of a refused call, some 365
// bytes, until that deadline, and clients choose it.
//
// It answers as the interceptors do, but without a trailer, which a tap handle
// cannot send. A client with a retry policy therefore uses its own backoff, and a
// grpc-go client (as of 1.85) whose attempts are used up may report UNKNOWN
// ("max retries exhausted ... EOF") instead of the answer. No event reports
// these denials: count the errors in a handle around this one.
//
// With [WithRegistered] it passes methods that the server does not have to the
// server's own answer. Without it, key also sees methods that clients make up; a
// peek at a key stores nothing.
//
// A limit on trial (algo.Shadow) denies nothing. Do not use it with a limiter that has a queue,
// which might admit the call later. It panics if l or key is nil.
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

// WithRegistered sets the methods of the server. The first call runs services,
// once:
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

// WithExempt is the same as [grpcmw.WithExempt].
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

// room denies a call only if a peek at the limiter shows that it has no room.
type room struct{ algo.Limiter }

// Unwrap returns the limiter, for its description.
func (r room) Unwrap() []algo.Limiter { return []algo.Limiter{r.Limiter} }

func (r room) Acquire(ctx context.Context, key string, _ int64) (algo.Lease, error) {
	ctx = noTime{ctx}
	lease, err := r.Limiter.Acquire(ctx, key, 0)
	lease.Release(algo.Canceled) // does nothing, unless the limiter does not support peeks
	if err == nil && lease.InForce() && (!lease.Allowed || lease.Remaining < 1) {
		if d, err := algo.Peek(ctx, r.Limiter, key, 1); err == nil && !d.Allowed { // has the reason
			return algo.NewLease(d, nil, algo.Handle{}), nil
		}
	}
	return algo.NewLease(algo.Decision{Allowed: true}, nil, algo.Handle{}), nil
}

// maxRefusedDeadline is how long a refused call may stay in memory.
const maxRefusedDeadline = 10 * time.Second

// longDeadline reports whether a refused call would stay in memory for longer.
func longDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) > maxRefusedDeadline
}

// noTime has the values of a context and has ended, so that limiters do not wait.
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
