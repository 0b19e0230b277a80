package grpcmw

import (
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Plans limits each call by its plan, which can be changed in use; see [NewPlans].
type Plans struct{ i *interceptor }

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
// listed, could not be decided; see [WithFailOpen]. NewPlans takes the options of
// Limits, and panics as that does.
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

// Set replaces the limits of all plans, for all later calls. The limiters hold
// the spending of keys: pass the same limiters again to keep it. After an error,
// which names the plan, nothing has changed.
func (p *Plans) Set(limits map[string][]Policy) error { return adapter.Error("Plans", p.set(limits)) }

func (p *Plans) set(limits map[string][]Policy) error {
	return admission.SetPlans(p.i.plans, limits, p.i.makePolicies)
}

// ServerOptions are the interceptors, for unary calls and streams.
func (p *Plans) ServerOptions() []grpc.ServerOption { return p.i.serverOptions() }
