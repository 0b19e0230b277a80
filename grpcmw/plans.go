package grpcmw

import (
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Plans limits each call by its plan. It can be changed in use; see [NewPlans].
type Plans struct{ i *interceptor }

// NewPlans makes limits by plan: plan returns the plan of a call, and limits holds
// the policies of each plan, charged together as by [Limits]. The plan "" is for
// calls without a plan ([keyfunc.ErrNoKey]) or with an unlisted one.
//
//	plans := grpcmw.NewPlans(rpckey.Context(planOf), map[string][]grpcmw.Policy{
//		"free": {{Limiter: free, Key: rpckey.Context(userOf)}},
//		"pro":  {{Limiter: pro, Key: rpckey.Context(userOf)}},
//		"":     {{Name: "anonymous", Limiter: anonymous, Key: rpckey.PeerIP()}},
//	})
//	srv := grpc.NewServer(plans.ServerOptions()...)
//
// plan must not depend on a choice of the client; use, for example, an identity in
// the context, and put the interceptor that identifies the caller first. Any key
// function can be plan: rpckey.FullMethod gives each method its limits.
//
// A single policy of a plan has the name of the plan, unless it has a Name. Change a
// limit by its limiter (SetRate, algo.Spec.Apply), the table by [Plans.Set], and the
// plan of a user by the result of plan.
//
// A call for which plan fails, or without a plan while "" is not listed, could not be
// decided; see [WithFailOpen]. NewPlans takes the options of Limits, and panics as
// Limits does.
func NewPlans(plan keyfunc.RPC, limits map[string][]Policy, opts ...Option) *Plans {
	i := makeInterceptor(configure("NewPlans", forSeveral, opts))
	i.plans = new(admission.Plans[call, *policies])
	i.plans.Init(adapter, &i.Settings, ofCall(plan))
	i.unknown = i.newPolicies(i.plans.Unknown)
	p := &Plans{i}
	if err := p.set(limits); err != nil {
		adapter.Misuse("NewPlans", err.Error())
	}
	return p
}

// Set replaces the limits of all plans, for all later calls. The limiters hold the
// debt of keys: pass the same limiters again to keep it. An error names the plan, and
// nothing has changed.
func (p *Plans) Set(limits map[string][]Policy) error { return adapter.Error("Plans", p.set(limits)) }

func (p *Plans) set(limits map[string][]Policy) error {
	return admission.SetPlans(p.i.plans, limits, p.i.makePolicies)
}

// ServerOptions returns the interceptors, for unary calls and streams.
func (p *Plans) ServerOptions() []grpc.ServerOption { return p.i.serverOptions() }
