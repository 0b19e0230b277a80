package grpcmw

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// TapHandle sheds calls that their limit has no room for before their message
// is read and a goroutine is started for them:
//
//	grpc.NewServer(append(
//		grpcmw.ServerOptions(l, key),
//		grpc.InTapHandle(grpcmw.TapHandle(l, key)))...)
//
// It only looks: it asks l for 0 units, sheds if none is remaining, and never
// charges, holds a slot or waits. So it stands beside the interceptors that
// decide, with the same limiter and key, and never instead of them. Where l
// cannot answer at once, or fails, the call passes on to them.
//
// It runs in the goroutine that reads the connection, where waiting would hold
// up all calls of that client. l is therefore asked with a context that has
// ended. The key function must not wait either.
//
// A call whose deadline is more than 10 s away is left to the interceptors:
// grpc-go (as of 1.85) keeps the timer of a call that a tap refuses, some 365
// bytes, until that deadline, and clients choose it.
//
// The answer is a status with details as everywhere, but no trailer: a tap
// handle cannot send one, so a client with a retry policy uses its own backoff,
// and a grpc-go client (as of 1.85) whose attempts are used up may report UNKNOWN
// ("max retries exhausted ... EOF") instead of the answer. Calls
// that it lets pass are not reported to the observer.
//
// With [WithRegistered], methods that the server does not have are not looked
// at. Without it, the key function also sees methods that clients make up;
// no limiter keeps anything for a key that is only looked at.
//
// A limit on trial (algo.Shadow) sheds nothing, and neither does a composition
// with one in it, whose other limits are left to the interceptors.
//
// Do not use it with a limiter that admits with a Delay or has a queue: what it
// sheds might have been admitted later.
//
// It takes WithName, WithDomain, WithExempt, WithoutDefaultExempt,
// WithMissingKey, WithObserver, WithRetryReserve and WithRegistered. It panics
// if l or key is nil, and if an option does not fit.
func TapHandle(l algo.Limiter, key keyfunc.RPC, opts ...Option) tap.ServerInHandle {
	g := newGate("TapHandle", onTap, l, key, opts)
	g.tapping = true
	return g.tap
}

// WithRegistered tells a tap handle the methods of the server. services is
// called once, at the first call:
//
//	grpcmw.WithRegistered(func() map[string]grpc.ServiceInfo { return srv.GetServiceInfo() })
func WithRegistered(services func() map[string]grpc.ServiceInfo) Option {
	return Option{"WithRegistered", func(s *settings) error {
		if services != nil {
			s.registered = sync.OnceValue(func() map[string]struct{} { return methodsOf(services()) })
		}
		return notNil(services == nil)
	}}
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

func (g *gate) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if g.exempt.covers(method) || !g.has(method) || pinned(ctx) {
		return ctx, nil
	}
	key, v, err := g.identify(ctx, method)
	switch {
	case err != nil || v == pass:
		return ctx, nil
	case v == refuse:
		return ctx, g.unasked(ctx, method, v, nil)
	}
	lease, err := g.limiter.Acquire(noTime{ctx}, key, 0)
	lease.Release(algo.Canceled) // nothing, unless l does not know a peek
	if err != nil {
		return ctx, nil
	}
	return ctx, g.glance(ctx, &ask{method: method, key: key}, &lease.Decision)
}

// longestPin is the most time for which a refused call may stay in memory.
const longestPin = 10 * time.Second

// pinned reports whether refusing the call would keep it for too long.
func pinned(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) > longestPin
}

// has reports whether the method is to be looked at.
func (g *gate) has(method string) bool {
	if g.registered == nil {
		return true
	}
	_, found := g.registered()[method]
	return found
}

// glance judges what a look at the limit has shown.
func (g *gate) glance(ctx context.Context, a *ask, d *algo.Decision) error {
	switch {
	case !d.Allowed:
		return g.deny(ctx, a, d, replyTo(d, a.key))
	case !binding(d):
		return nil
	case d.Remaining < 1:
		spent := algo.Decision{Reason: g.shortOf(), RetryAfter: d.NextAfter}
		return g.deny(ctx, a, d, replyTo(&spent, a.key))
	}
	d.Remaining-- // what this call would leave
	if g.refusesRetry(ctx, d) {
		return g.deny(ctx, a, d, reply{code: codes.Unavailable, text: textOverload, wait: algo.Forever})
	}
	return nil
}

// shortOf is the reason why nothing is remaining, which a look does not tell.
func (g *gate) shortOf() algo.Reason {
	if d, ok := algo.Describe(g.limiter); ok && d.Unit == algo.ConcurrentRequests {
		return algo.Overload
	}
	return algo.Quota
}

// noTime is a context with the values of another, and no time: whoever would
// wait with it does not.
type noTime struct{ context.Context }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (noTime) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
func (noTime) Done() <-chan struct{}       { return closed }
func (noTime) Err() error                  { return context.Canceled }
