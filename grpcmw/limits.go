package grpcmw

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Policy is one of several limits on the same calls; see [Limits] and [NewPlans].
type Policy struct {
	// Name is the name in the details of a denial, as for [WithName]. The default
	// describes the limit.
	Name string
	// Limiter decides. Required.
	Limiter algo.Limiter
	// Key returns the key of a call. Required.
	Key keyfunc.RPC
	// Cost is the cost of a call, as for [WithCost]; nil: the function of
	// WithCost, else 1.
	Cost Cost
	// Unit is the unit of costs, as for [WithUnit]; the default is the one of
	// WithUnit, else requests.
	Unit algo.Unit
}

// Limits is [ServerOptions] for several policies in one decision: a call is
// charged to all of them or to none, see [algo.AcquireAll]. A denial names the
// policies that had no room, and its delay suffices for all of them.
//
// A policy whose key is missing under [Skip], or that could not find its key under
// [FailOpen], is left out; the others still hold. A limiter that fails leaves the
// whole decision open. Put the policy that denies most often first, and one that
// may wait last.
//
// Limits panics as ServerOptions does, if ps is empty, and if two policies have
// the same name. It takes the options of ServerOptions except WithName.
func Limits(ps []Policy, opts ...Option) []grpc.ServerOption {
	i, err := makeSeveral(configure(adapter, "Limits", forSeveral, opts), "", ps)
	if err != nil {
		adapter.Misuse("Limits", err.Error())
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(i.unary), grpc.ChainStreamInterceptor(i.stream)}
}

// makeSeveral makes the interceptor of several policies; see
// admission.MakePolicies.
func makeSeveral(s *settings, standard string, ps []Policy) (*interceptor, error) {
	limits := make([]admission.Limit[call], len(ps))
	for i, p := range ps {
		limits[i] = admission.Limit[call]{Name: p.Name, Limiter: p.Limiter, Key: ofCall(p.Key), Cost: p.Cost.ofCall(), Unit: p.Unit}
	}
	policies, err := admission.MakePolicies(adapter, &s.Settings, limits, standard)
	if err != nil {
		return nil, err
	}
	first := makeInterceptor(s, policies.All[0])
	if len(policies.All) == 1 {
		return first, nil
	}
	several := *first
	several.names = nil
	for _, p := range policies.All {
		several.names = append(several.names, p.Named())
		one := makeInterceptor(s, p)
		several.needsOutcome = several.needsOutcome || one.needsOutcome
		several.all = append(several.all, one)
	}
	return &several, nil
}

type candidate = admission.Candidate[call]

// named returns the interceptor of the policy with that name.
func (i *interceptor) named(policy string) *interceptor {
	for _, one := range i.all {
		if one.Name == policy {
			return one
		}
	}
	return i
}

// decideAll is decide under several policies.
func (i *interceptor) decideAll(c call, lease *admission.Lease) error {
	all, err := i.findAll(c, &lease.Lease)
	if err != nil {
		return err
	}
	return i.acquireAll(c, lease, all, 0, true)
}

// findAll finds the keys of a call. A policy without one is left out, or the error
// is the answer.
func (i *interceptor) findAll(c call, lease *algo.Lease) ([]candidate, error) {
	reserve := i.reserve(c.ctx)
	all := make([]candidate, 0, len(i.all))
	for _, one := range i.all {
		k := candidate{Policy: one.Policy, Attempt: admission.Attempt{Reserve: reserve}}
		if r := one.FindKey(c.ctx, c, lease, &k.Attempt); r == Allowed {
			all = append(all, k)
		} else if err := one.answer(c.ctx, &k.Attempt, r, &lease.Decision, c.method, true); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// acquireAll charges a call to all policies or to none, and waits at most wait for
// quota. opening: an admission may have trailers.
func (i *interceptor) acquireAll(c call, lease *admission.Lease, all []candidate, wait time.Duration, opening bool) error {
	if len(all) == 0 {
		return nil
	}
	reqs := make([]algo.Request, len(all))
	lease.Policies = i.names[:0:0]
	for k := range all {
		one := &all[k]
		if r := one.FindCost(c.ctx, c, &one.Attempt); r != Allowed {
			return i.named(one.Name).answer(c.ctx, &one.Attempt, r, &lease.Decision, c.method, opening)
		}
		reqs[k] = algo.Request{Limiter: one.Limiter, Key: one.Attempt.Key, N: one.Attempt.Cost}
		lease.Policies = append(lease.Policies, one.Named())
	}
	all[0].MaxWait = wait
	parts, r := admission.AcquireAll(c.ctx, &lease.Lease, all, reqs)
	if r == Denied {
		return i.refuseAll(c, all, parts, &lease.Decision)
	}
	return i.answerAll(c, all, parts, r, opening)
}

// answerAll reports everything but a denial, which is the same for all policies.
func (i *interceptor) answerAll(c call, all []candidate, parts []algo.Decision, r Result, opening bool) (refused error) {
	for k := range all {
		one, part := &all[k], &algo.Decision{}
		if parts != nil {
			part = &parts[k]
		}
		if err := i.named(one.Name).answer(c.ctx, &one.Attempt, r, part, c.method, opening); refused == nil {
			refused = err
		}
	}
	return refused
}

// refuseAll answers the denial d. Observers get the policies that had no room.
func (i *interceptor) refuseAll(c call, all []candidate, parts []algo.Decision, d *algo.Decision) error {
	var violated []int
	first := 0 // of those whose reason is the gravest
	for k := range parts {
		if parts[k].Allowed || parts[k].Reason == algo.Admitted {
			continue
		}
		if len(violated) == 0 || parts[k].Reason > parts[first].Reason {
			first = k
		}
		violated = append(violated, k)
	}
	sent, code, refused := i.named(all[first].Name).refuse(c.ctx, &all[first].Attempt, Denied, d)
	if len(violated) > 1 && code == codes.ResourceExhausted {
		nameAll(refused, all, violated)
	}
	for _, k := range violated {
		all[k].Report(&all[k].Attempt, Denied, &parts[k], c.method, int(code), sent)
	}
	return i.custom(c.ctx, refused, d)
}

// nameAll makes a denial for quota name all policies that had no room.
func nameAll(refused error, all []candidate, violated []int) {
	denial := denialIn(refused)
	if denial == nil {
		return
	}
	failure := new(errdetails.QuotaFailure)
	for _, k := range violated {
		failure.Violations = append(failure.Violations, violation(admission.ClassOf(all[k].Attempt.Key), all[k].Name))
	}
	p := denial.status.Proto()
	p.Details[quotaDetail] = encode(failure)
	denial.status = status.FromProto(p)
}
