package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Plans limits each request by its plan, which can be changed in use; see
// [NewPlans].
type Plans struct{ m middleware }

// NewPlans makes limits by plan: plan returns the plan of a request, and limits
// has the policies of each plan, which are charged together as by [Limits]. The
// plan "" is for requests without a plan ([keyfunc.ErrNoKey]) and with one that
// is not listed.
//
//	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
//		"free": {{Limiter: free, Key: keyfunc.Context(userOf)}},
//		"pro":  {{Limiter: pro, Key: keyfunc.Context(userOf)}},
//		"":     {{Name: "anonymous", Limiter: anonymous, Key: keyfunc.ClientIP()}},
//	})
//	handler = plans.Limit(handler)
//
// plan should return the origin of the request, such as an identity in the
// context, and not a choice of the client. Any key function is a plan:
// [keyfunc.Route] gives each route its limits.
//
// A single policy of a plan is named after the plan, unless it has a Name. A limit
// is changed by its own limiter (SetRate, algo.Spec.Apply), the table by
// [Plans.Set], and the plan of a user by the result of plan.
//
// A request for which plan fails, or that has no plan while the plan "" is not
// listed, could not be decided; see [WithFailOpen]. NewPlans takes the options of
// Limits, and panics as that does.
func NewPlans(plan keyfunc.HTTP, limits map[string][]Policy, opts ...Option) *Plans {
	p := new(Plans)
	m := &p.m
	m.Config, m.plans = configure(adapter, "NewPlans", forLimits, opts), new(admission.Plans[*http.Request, *policies])
	m.plans.Init(adapter, &m.Settings, plan)
	m.unknown = m.newPolicies(m.plans.Unknown)
	if err := p.set(limits); err != nil {
		adapter.Misuse("NewPlans", err.Error())
	}
	return p
}

// Set replaces the limits of all plans, for all later requests. The limiters hold
// the spending of keys: pass the same limiters again to keep it. After an error,
// which names the plan, nothing has changed.
func (p *Plans) Set(limits map[string][]Policy) error { return adapter.Error("Plans", p.set(limits)) }

func (p *Plans) set(limits map[string][]Policy) error {
	return admission.SetPlans(p.m.plans, limits, p.m.makePolicies)
}

// Limit is the middleware.
func (p *Plans) Limit(next http.Handler) http.Handler { return p.m.wrap(next) }
