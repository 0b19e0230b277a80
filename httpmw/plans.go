package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Plans limits each request by its plan. It can be changed in use; see [NewPlans].
type Plans struct{ m middleware }

// NewPlans makes limits by plan: plan returns the plan of a request, and limits
// holds the policies of each plan, charged together as by [Limits]. The plan ""
// is for requests without a plan ([keyfunc.ErrNoKey]) or with an unlisted one.
//
//	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
//		"free": {{Limiter: free, Key: keyfunc.Context(userOf)}},
//		"pro":  {{Limiter: pro, Key: keyfunc.Context(userOf)}},
//		"":     {{Name: "anonymous", Limiter: anonymous, Key: keyfunc.ClientIP()}},
//	})
//	handler = plans.Limit(handler)
//
// plan must not depend on a choice of the client; use, for example, an identity in
// the context. Any key function can be plan: [keyfunc.Route] gives each route its
// limits.
//
// A single policy of a plan has the name of the plan, unless it has a Name. Change a
// limit by its limiter (SetRate, algo.Spec.Apply), the table by [Plans.Set], and the
// plan of a user by the result of plan.
//
// A request for which plan fails, or without a plan while "" is not listed, could not
// be decided; see [WithFailOpen]. NewPlans takes the options of Limits, and panics as
// Limits does.
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
// the debt of keys: pass the same limiters again to keep it. An error names the
// plan, and nothing has changed.
func (p *Plans) Set(limits map[string][]Policy) error { return adapter.Error("Plans", p.set(limits)) }

func (p *Plans) set(limits map[string][]Policy) error {
	return admission.SetPlans(p.m.plans, limits, p.m.makePolicies)
}

// Limit returns the middleware around next.
func (p *Plans) Limit(next http.Handler) http.Handler { return p.m.wrap(next) }
