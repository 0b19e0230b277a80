package grpcmw

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// TapHandle denies calls for which the limit has no room before their message
// is read and a goroutine is started for them:
//
//	grpc.NewServer(append(
//		grpcmw.ServerOptions(l, key),
//		grpc.InTapHandle(grpcmw.TapHandle(l, key)))...)
//
// It only peeks: it acquires 0 units from l and denies the call if none remain.
// It never charges, holds a slot or waits. So it is used together with the
// interceptors, with the same limiter and key, and never instead of them. If l
// cannot answer at once, or fails, the interceptors decide.
//
// It runs in the goroutine that reads the connection, where waiting would delay
// all calls of that client. l therefore gets a context that has ended. The key
// function must not wait either.
//
// A call whose deadline is more than 10 s away is left to the interceptors:
// grpc-go (as of 1.85) keeps the timer of a call that a tap refuses, some 365
// bytes, until that deadline, and clients choose it.
//
// The answer is a status with the usual details, but without a trailer, which a
// tap handle cannot send. A client with a retry policy therefore uses its own
// backoff, and a grpc-go client (as of 1.85) whose attempts are used up may
// report UNKNOWN ("max retries exhausted ... EOF") instead of the answer. Calls
// that pass are not reported to the observer.
//
// With [WithRegistered], methods that the server does not have pass to the
// server's own answer. Without it, the key function also sees methods that
// clients make up; no limiter stores anything for a key that is only peeked at.
//
// A limit on trial (algo.Shadow) denies nothing.
//
// Do not use it with a limiter that admits with a Delay or has a queue: a call
// that it denies might have been admitted later.
//
// It takes WithName, WithDomain, WithExempt, WithoutDefaultExempt,
// WithMissingKey, WithObserver, WithSkip, WithDenied, WithRetryReserve and
// WithRegistered. It panics if l or key is nil, or if an option does not fit.
func TapHandle(l algo.Limiter, key keyfunc.RPC, opts ...Option) tap.ServerInHandle {
	i := newInterceptor(adapter, "TapHandle", onTap, l, key, opts)
	i.tapping = true
	return i.tap
}

// WithRegistered gives a tap handle the methods of the server. services is
// called once, at the first call:
//
//	grpcmw.WithRegistered(func() map[string]grpc.ServiceInfo { return srv.GetServiceInfo() })
func WithRegistered(services func() map[string]grpc.ServiceInfo) Option {
	return newOption("WithRegistered", func(s *settings) error {
		if services != nil {
			s.Own.registered = sync.OnceValue(func() map[string]struct{} { return methodsOf(services()) })
		}
		return notNil(services != nil)
	})
}

func methodsOf(services map[string]grpc.ServiceInfo) map[string]struct{} {
	methods := make(map[string]struct{})
	for service, info := range services {
		for _, m := range info.Methods {
			methods["/"+service+"/"+m.Name] = struct{}{}
		}
	}
	return methods
}

func (i *interceptor) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if i.passesUnary(ctx, method) || !i.has(method) || longDeadline(ctx) {
		return ctx, nil
	}
	var lease algo.Lease
	a := admission.Attempt{Reserve: i.reserve(ctx)}
	d := &lease.Decision
	switch i.FindKey(ctx, call{ctx: ctx, method: method}, &lease, &a) {
	case Denied:
		return ctx, i.answer(ctx, &a, Denied, d, method, false)
	case Allowed:
	default:
		return ctx, nil
	}
	var err error
	lease, err = i.Limiter.Acquire(noTime{ctx}, a.Key, 0)
	lease.Release(algo.Canceled) // does nothing, unless l does not know peeks
	if err != nil || i.hasRoom(d, &a) {
		return ctx, nil
	}
	return ctx, i.answer(ctx, &a, Denied, d, method, false)
}

// maxRefusedDeadline is how long a refused call may stay in memory.
const maxRefusedDeadline = 10 * time.Second

// longDeadline reports whether refusing the call would keep it for too long.
func longDeadline(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) > maxRefusedDeadline
}

// has reports whether the server has the method.
func (i *interceptor) has(method string) bool {
	if i.registered == nil {
		return true
	}
	_, found := i.registered()[method]
	return found
}

// hasRoom reports whether the peek d shows room for one unit. If not, it turns
// d into the denial.
func (i *interceptor) hasRoom(d *algo.Decision, a *admission.Attempt) bool {
	switch {
	case !d.Allowed:
		return false
	case d.Limit <= 0 || !i.InForce(d):
		return true
	case d.Remaining < 1:
		d.Allowed, d.Reason, d.RetryAfter = false, i.reasonWhenSpent(), d.NextAfter
		return false
	}
	d.Remaining-- // as after this call
	if i.Reserved(d, a.Reserve) {
		a.Cause = admission.ByReserve
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Overload, algo.Forever
		return false
	}
	return true
}

// reasonWhenSpent is the reason of a denial when nothing remains, which a peek
// does not contain.
func (i *interceptor) reasonWhenSpent() algo.Reason {
	if d, ok := algo.Describe(i.Limiter); ok && d.Unit == algo.ConcurrentRequests {
		return algo.Overload
	}
	return algo.Quota
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
