package admission

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
	"github.com/sluice-go/sluice/keyfunc"
)

// Limit is one of several limits on the same calls, before it is a Policy.
type Limit[C any] struct {
	Name    string
	Limiter algo.Limiter
	Key     func(C) (string, error)
	Cost    func(C) int64
}

// NewPolicies makes one policy with the name in s. It panics on a misconfiguration, with constructor
// in the message.
func NewPolicies[C any](a Adapter, s *Settings[C], l algo.Limiter, key func(C) (string, error), constructor string) *Policies[C] {
	ps, err := MakePolicies(a, s, []Limit[C]{{s.Name, l, key, nil}}, "")
	if err != nil {
		a.Misuse(constructor, err.Error())
	}
	return ps
}

// MakePolicies makes the policies of one decision, each with its own name. A single limit
// without a name gets the name standard, if that is valid; others are named by their description.
func MakePolicies[C any](a Adapter, common *Settings[C], limits []Limit[C], standard string) (*Policies[C], error) {
	if len(limits) == 0 {
		return nil, errors.New("there are no policies")
	}
	names, all := map[string]bool{}, make([]*Policy[C], 0, len(limits))
	for i, l := range limits {
		of := ""
		if len(limits) > 1 {
			of = " of policy " + strconv.Itoa(i)
		} else if l.Name == "" && CheckName(standard) == nil {
			l.Name = standard
		}
		p, err := makePolicy(a, common, l, of)
		switch {
		case err != nil:
			return nil, err
		case names[p.Name]:
			return nil, errors.New("two policies have the name " + p.Name + ": give each a Name")
		}
		names[p.Name] = true
		all = append(all, p)
	}
	return newPolicies(a, common, all...), nil
}

// makePolicy makes a policy; of ("" or " of policy 2") is a part of errors.
func makePolicy[C any](a Adapter, common *Settings[C], l Limit[C], of string) (*Policy[C], error) {
	switch {
	case IsNil(l.Limiter):
		return nil, errors.New("the limiter" + of + " is nil")
	case l.Key == nil:
		return nil, errors.New("the key function" + of + " is nil")
	case l.Name == "":
		l.Name = defaultName(l.Limiter)
	}
	if err := CheckName(l.Name); err != nil {
		return nil, fmt.Errorf("the name%s: %w", of, err)
	}
	if l.Cost == nil {
		l.Cost = common.Cost
	}
	every := time.Hour
	if common.Missing == Skip { // some have none
		every = 0
	}
	common.names.Add(l.Name)
	for one := range algo.Walk(l.Limiter) {
		warning.NameLimiter(one, l.Name)
		if common.unobserved && onTrial(one) {
			warning.Trial.Log("policy", l.Name)
		}
	}
	return &Policy[C]{Adapter: a, Settings: common, Fields: newFields(l.Name, l.Limiter), Name: l.Name, Key: l.Key, Cost: l.Cost, keyless: noKeys(every)}, nil
}

// onTrial reports whether l is on trial: it admits what a limiter beneath it would deny.
func onTrial(l algo.Limiter) bool {
	w, wraps := l.(algo.Wrapper)
	_, chooses := l.(algo.Chooser)
	return wraps && !chooses && algo.About(l).Off &&
		slices.ContainsFunc(w.Unwrap(), func(inner algo.Limiter) bool { return !algo.About(inner).Off })
}

// Plans chooses the limits of a call, of an adapter's type M, by the plan of the call.
type Plans[C, M any] struct {
	plan   func(C) (string, error)
	limits atomic.Pointer[map[string]M]
	// Unknown is for calls whose plan could not be found.
	Unknown *Policies[C]
	keyless
}

// Init sets the function that returns the plan of a call. It panics if plan is nil.
func (p *Plans[C, M]) Init(a Adapter, s *Settings[C], plan func(C) (string, error)) {
	a.Require(plan != nil, "NewPlans", "the function of the plan is nil")
	p.plan, p.keyless, p.Unknown = plan, noKeys(0), newPolicies(a, s, &Policy[C]{Adapter: a, Settings: s, Name: "plans"})
}

// Choose returns the limits of a call's plan; for a call without a plan, or with an
// unlisted one, the limits of the plan "".
func (p *Plans[C, M]) Choose(call C) (m M, err error) {
	name, err := p.plan(call)
	limits := *p.limits.Load()
	switch {
	case err == nil:
		p.share.Usual(keyed)
		if m, ok := limits[name]; ok {
			return m, nil
		}
	case !errors.Is(err, keyfunc.ErrNoKey):
		return m, err
	default:
		p.noKey("plans", err)
	}
	if m, ok := limits[""]; ok {
		return m, nil
	}
	return m, fmt.Errorf(`the plan %q is not listed, and neither is the plan "" for all others`, name)
}

// SetPlans replaces the limits of all plans. After an error nothing has changed.
func SetPlans[C, M, P any](p *Plans[C, M], plans map[string][]P, compile func(plan string, limits []P) (M, error)) error {
	if len(plans) == 0 {
		return errors.New("there are no plans")
	}
	limits := make(map[string]M, len(plans))
	for name, ps := range plans {
		m, err := compile(name, ps)
		if err != nil {
			return fmt.Errorf("plan %q: %w", name, err)
		}
		limits[name] = m
	}
	p.limits.Store(&limits)
	return nil
}
