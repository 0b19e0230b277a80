package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// UnaryServerInterceptor limits unary calls: it acquires from l, under the key
// that key returns, before the handler runs. [ServerOptions] installs it together
// with the interceptor for streams.
//
// It answers a denied call with a status and exactly one trailer; see the package
// comment. It sleeps the Delay of an admission first; if the Delay would outlast
// the call's deadline, it refunds and denies the call instead. It releases the
// lease when the handler returns, panics or exits. A call that its client has
// canceled, or whose deadline has passed, always ends untimed, so that a client
// cannot lower an adaptive limit.
//
// It takes every option for servers except those about streams. It panics if l
// or key is nil, and if an option does not fit.
func UnaryServerInterceptor(l algo.Limiter, key keyfunc.RPC, opts ...Option) grpc.UnaryServerInterceptor {
	return newInterceptor("UnaryServerInterceptor", onServer, l, key, opts).unary
}

func (i *interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := call{ctx, info.FullMethod, req}
	if i.exempt.unary(c.method) {
		return handler(i.Unlimited(ctx), req)
	}
	ps, err := i.policies(c)
	switch {
	case err != nil:
		setPushback(ctx, err)
		return nil, err
	case ps == nil:
		return handler(i.Unlimited(ctx), req)
	case i.LeaseInContext:
		kept := new(algo.Lease)
		return i.serve(c, kept, kept, ps, handler)
	}
	var lease algo.Lease // stays on the stack
	return i.serve(c, &lease, nil, ps, handler)
}

// serve serves c under lease. kept is lease if the handler wants it, otherwise nil.
func (i *interceptor) serve(c call, lease, kept *algo.Lease, ps *policies, handler grpc.UnaryHandler) (any, error) {
	outcome := algo.Failed // unless the handler returns
	defer func() {
		if outcome == algo.Failed && c.ctx.Err() != nil {
			outcome |= algo.Untimed
		}
		lease.Release(outcome)
	}()
	inner, trailer, err := i.admit(c, lease, kept, ps)
	if err != nil {
		outcome = algo.Canceled
		setPushback(c.ctx, err)
		return nil, err
	}
	if trailer != nil {
		// An error means that the call is over.
		_ = grpc.SetTrailer(c.ctx, trailer)
	}
	resp, err := handler(inner, c.msg)
	if outcome = i.outcome(c.ctx, ps, err); outcome == algo.Succeeded|algo.Untimed {
		outcome = algo.Failed | algo.Untimed // the client has gone
	}
	return resp, err
}

// admit decides on c. With a nil error c may start, with the context and trailer.
func (i *interceptor) admit(c call, lease, kept *algo.Lease, ps *policies) (context.Context, metadata.MD, error) {
	var room [admission.Few]algo.Request
	reqs, pass, err := ps.Try(c.ctx, c, lease, room[:])
	if pass && kept == nil && !i.Own.rateTrailers {
		return c.ctx, nil, nil
	}
	var v verdict // here, so that it does not burden the stack beneath the handler
	ps.Admit(c.ctx, c, lease, &v, reqs, err)
	return i.admitted(c, kept, ps, &v)
}
