package admission

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/internal/warning"
	"github.com/sluice-go/sluice/keyfunc"
)

// Policies decides on calls of type C by one policy, several, or those of a plan. It is
// immutable.
type Policies[C any] struct {
	Adapter
	*Settings[C]
	All          []*Policy[C]
	NeedsRelease bool // a lease may hold a slot, or its outcome decides the charge
	chooses      bool // the limiter depends on the call
	quick        bool // each limiter is asked for one unit, without an observer
	limiters     []algo.Limiter
	policies     []string // their names
}

func newPolicies[C any](a Adapter, s *Settings[C], all ...*Policy[C]) *Policies[C] {
	ps := &Policies[C]{Adapter: a, Settings: s, All: all, quick: s.Observe == nil}
	for i, p := range all {
		p.Index = i
		ps.limiters, ps.policies = append(ps.limiters, p.Limiter), append(ps.policies, p.Name)
		if ps.quick = ps.quick && p.Cost == nil; p.Limiter == nil { // of calls whose plan is not known
			continue
		}
		ps.NeedsRelease = ps.NeedsRelease || algo.About(p.Limiter).NeedsRelease
		for l := range algo.Walk(p.Limiter) {
			_, chooser := l.(algo.Chooser)
			ps.chooses = ps.chooses || chooser
		}
	}
	return ps
}

// WithLease returns the context for the handler of a call that v lets pass, with its lease if
// the handler wants that.
func (ps *Policies[C]) WithLease(ctx context.Context, lease *algo.Lease, v *Verdict[C]) context.Context {
	if !ps.LeaseInContext {
		return ctx
	}
	limiters, policies := ps.limiters, ps.policies
	if parts := v.Parts(); ps.chooses || len(parts) < len(policies) {
		limiters, policies = nil, nil
		for i := range parts {
			limiters, policies = append(limiters, parts[i].Request.Limiter), append(policies, parts[i].Name)
		}
	}
	if len(policies) < ps.names.Len() {
		ctx = ps.names.With(ctx)
	}
	return algo.WithLease(ctx, lease, limiters, policies...)
}

// Unlimited returns the context for the handler of a call that passes this limit.
func (s *Settings[C]) Unlimited(ctx context.Context) context.Context {
	if !s.LeaseInContext {
		return ctx
	}
	return s.names.With(ctx)
}

// noteUnkept records that the handlers of some calls find no lease. It writes once, because calls share the word.
func (s *Settings[C]) noteUnkept() {
	if !s.LeaseInContext && !warning.Unkept.Load() {
		warning.Unkept.Store(true)
	}
}

// Try does what most calls need of Admit: if all limiters pass a call at once, it makes no verdict,
// which takes as long as the decision. Otherwise, or if a verdict is needed, Admit continues with reqs,
// made in room, of the keys that were found, and with err, of the next key function, or of the limiters
// if all keys were found.
func (ps *Policies[C]) Try(ctx context.Context, call C, lease *algo.Lease, room []algo.Request) (reqs []algo.Request, pass bool, err error) {
	ps.noteUnkept()
	if !ps.quick || ps.chooses {
		return nil, false, nil
	}
	if len(ps.All) > len(room) {
		room = make([]algo.Request, len(ps.All))
	}
	reqs = room[:len(ps.All)]
	for i, p := range ps.All {
		r := &reqs[i]
		if r.Key, err = p.find(call); err != nil {
			return reqs[:i], false, err
		}
		r.Limiter, r.N = p.Limiter, 1
	}
	if l, ok := reqs[0].Limiter.(*algo.RateLimiter); ok && len(reqs) == 1 { // in line, and its lease in place
		*lease, err = l.Acquire(ctx, reqs[0].Key, 1)
	} else {
		*lease, err = algo.AcquireAll(ctx, reqs...)
	}
	return reqs, err == nil && lease.Allowed && lease.Delay <= 0 && lease.Trial == algo.Admitted, err
}

// find returns the key of call, and counts the calls that have one.
func (p *Policy[C]) find(call C) (key string, err error) {
	if key, err = p.Key(call); err == nil {
		p.share.Usual(keyed)
	}
	return key, err
}

// Admit decides on a call, with the results of Try or none, and charges all policies or none. v must be
// zero. If v passes, the call may start, and lease is acquired, or zero if nothing limits the call.
// Otherwise nothing stays charged. Admit leaves out a policy without a key under Skip, or whose key
// function fails with FailOpen.
func (ps *Policies[C]) Admit(ctx context.Context, call C, lease *algo.Lease, v *Verdict[C], reqs []algo.Request, err error) {
	switch {
	case !ps.Keys(ctx, call, v, reqs, err):
	case len(reqs) == len(ps.All):
		ps.decided(ctx, lease, v, false, err)
	default:
		ps.Charge(ctx, call, lease, v, 0)
	}
}

// Keys does the part of Admit that a stream needs once: it finds the key of each policy and
// chooses its limiter. It reports false if no limiter has to decide.
func (ps *Policies[C]) Keys(ctx context.Context, call C, v *Verdict[C], reqs []algo.Request, failed error) bool {
	ps.noteUnkept()
	if n := len(ps.All); n > Few {
		v.more = make([]Part[C], 0, n)
	}
	for i, p := range ps.All {
		key, err := "", failed
		switch {
		case i < len(reqs):
			key, err = reqs[i].Key, nil
		case failed == nil || i > len(reqs):
			key, err = p.find(call)
		}
		if err != nil {
			if key, v.Result = ps.keyless(ctx, p, v, err); v.Blame != nobody {
				return false
			} else if v.Result != telemetry.Allowed {
				continue
			}
		}
		l := p.Limiter
		if ps.chooses {
			if l, err = algo.Resolve(ctx, l, key); err != nil {
				v.only(p, key)
				p.undecided(ctx, v, err)
				return false
			}
		}
		v.add(p, l, key)
	}
	if v.count == 0 {
		v.Result = skipped
		return false
	}
	v.Result = telemetry.Allowed
	return true
}

// keyless handles a call without a key: it returns the shared key and Allowed, leaves the
// policy out, or sets v.Blame.
func (ps *Policies[C]) keyless(ctx context.Context, p *Policy[C], v *Verdict[C], err error) (string, telemetry.Result) {
	switch {
	case !errors.Is(err, keyfunc.ErrNoKey):
		var one Verdict[C]
		one.only(p, "")
		if p.undecided(ctx, &one, err); one.Pass() {
			ps.Report(ctx, &one, "", 0, nil)
		} else {
			*v = one
		}
		return "", one.Result
	case p.Missing == Skip:
		p.noKey(p.Name, err)
		return "", skipped
	case p.Missing != Shared:
		v.only(p, keytext.Missing.Key())
		v.Err = keyfunc.ErrNoKey
		*v.Decision() = algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}
		if v.denied(ctx); v.Result == telemetry.Denied {
			v.Blame = Keyless
		}
		return "", v.Result
	}
	p.noKey(p.Name, err)
	return keytext.Missing.Key(), telemetry.Allowed
}

// Undecided makes v the verdict on a call whose policies could not be found.
func (ps *Policies[C]) Undecided(ctx context.Context, v *Verdict[C], err error) {
	v.only(ps.All[0], "")
	ps.All[0].undecided(ctx, v, err)
}

// Decided makes v the verdict on a call that a limiter has decided elsewhere, or failed to.
func (ps *Policies[C]) Decided(v *Verdict[C], key string, d algo.Decision) {
	v.only(ps.All[0], key)
	switch {
	case d.Allowed:
		v.Result, *v.Decision() = telemetry.Allowed, d
	case d.Reason == algo.Admitted:
		v.Result = telemetry.FailedClosed
		v.refuse(Undecided)
	default:
		v.Result, *v.Decision() = telemetry.Denied, d
		v.refuse(blames[min(d.Reason, algo.Never)])
	}
}
