package grpcmw

import (
	"context"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Plans limits each call by its plan, which can be changed in use; see [NewPlans].
type Plans struct {
	settings *settings
	base     *interceptor // of calls whose plan could not be found
	table    admission.Plans[call, *interceptor]
}

// NewPlans makes limits by plan: plan returns the plan of a call, and limits has
// the policies of each plan, which are charged together as by [Limits]. The plan
// "" is for calls without a plan ([keyfunc.ErrNoKey]) and with one that is not
// listed.
//
//	plans := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{
//		"free": {{Limiter: free, Key: rpckey.Context(userOf)}},
//		"pro":  {{Limiter: pro, Key: rpckey.Context(userOf)}},
//		"":     {{Name: "anonymous", Limiter: anonymous, Key: rpckey.PeerIP()}},
//	})
//	srv := grpc.NewServer(plans.ServerOptions()...)
//
// plan should return the origin of the call, such as an identity in the context,
// and not a choice of the client. Any key function is a plan: rpckey.FullMethod
// gives each method its limits. The interceptor that identifies the caller comes
// before.
//
// A single policy of a plan is named after the plan, unless it has a Name. A limit
// is changed by its own limiter (SetRate, algo.Spec.Apply), the table by
// [Plans.Set], and the plan of a user by the result of plan.
//
// A call for which plan fails, or that has no plan while the plan "" is not
// listed, could not be decided; see [WithOnError]. NewPlans takes the options of
// Limits, and panics as that does.
func NewPlans(plan keyfunc.RPC, limits map[string][]Policy, opts ...Option) *Plans {
	p := &Plans{settings: configure(adapter, "NewPlans", forSeveral, opts)}
	p.table.Init(adapter, &p.settings.Settings, ofCall(plan))
	p.base = makeInterceptor(p.settings, p.table.Unknown.All[0])
	if err := p.set(limits); err != nil {
		adapter.Misuse("NewPlans", err.Error())
	}
	return p
}

// Set replaces the limits of all plans, for all later calls. The limiters hold
// the spending of keys: pass the same limiters again to keep it. After an error,
// which names the plan, nothing has changed.
func (p *Plans) Set(limits map[string][]Policy) error { return adapter.Error("Plans", p.set(limits)) }

func (p *Plans) set(limits map[string][]Policy) error {
	return admission.SetPlans(&p.table, limits, func(plan string, ps []Policy) (*interceptor, error) {
		return makeSeveral(p.settings, plan, ps)
	})
}

// ServerOptions are the interceptors, for unary calls and streams.
func (p *Plans) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(p.unary), grpc.ChainStreamInterceptor(p.stream)}
}

func (p *Plans) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if p.base.exempt.unary(info.FullMethod) {
		return handler(p.base.Unlimited(ctx), req)
	}
	i, err := p.choose(call{ctx, info.FullMethod, req})
	if err != nil {
		setPushback(ctx, err)
		return nil, err
	}
	if i == nil {
		return handler(p.base.Unlimited(ctx), req)
	}
	return i.unary(ctx, req, info, handler)
}

func (p *Plans) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	i, err := p.choose(call{ctx: ss.Context(), method: info.FullMethod})
	if err != nil {
		pushbacks, outermost := pushbacksOf(ss.Context())
		if pushbacks.add(err); outermost {
			pushbacks.writeTo(ss)
		}
		return err
	}
	if i == nil {
		return handler(srv, p.base.unlimitedStream(ss))
	}
	return i.stream(srv, ss, info, handler)
}

// choose returns the interceptor of a call; nil if the call passes unlimited. The
// error is the answer.
func (p *Plans) choose(c call) (*interceptor, error) {
	if p.base.passes(c.ctx, c.method) {
		return nil, nil
	}
	i, err := p.table.Choose(c)
	if err == nil {
		return i, nil
	}
	var a admission.Attempt
	r := p.base.Undecided(c.ctx, &a, err)
	return nil, p.base.answer(c.ctx, &a, r, &algo.Decision{}, c.method, true)
}
