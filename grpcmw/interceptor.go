package grpcmw

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

var adapter = admission.Adapter{Package: "grpcmw", Transport: telemetry.GRPC}

// policies holds the policies that decide on a call.
type policies struct {
	*admission.Policies[call]
	details []*details // of refusals, by policy
	// needsOutcome: the outcome decides on a slot or a charge.
	needsOutcome bool
}

// interceptor limits the calls of a server. It is immutable.
type interceptor struct {
	*settings
	exempt  exempt
	fixed   *policies // nil: those of the call's plan
	plans   *admission.Plans[call, *policies]
	unknown *policies // of calls whose plan is not known
}

// newInterceptor makes an interceptor and panics on every mistake that shows before a call.
func newInterceptor(constructor string, takes []string, l algo.Limiter, key keyfunc.RPC, opts []Option) *interceptor {
	adapter.Require(!admission.IsNil(l), constructor, "the limiter is nil")
	adapter.Require(key != nil, constructor, "the key function is nil; rpckey.Global gives all calls one limit")
	i := makeInterceptor(configure(constructor, takes, opts))
	i.fixed = i.newPolicies(admission.NewPolicies(adapter, &i.Settings, l, ofCall(key), constructor))
	return i
}

func configure(constructor string, takes []string, opts []Option) *settings {
	s := admission.Configure(adapter, constructor, takes, interceptorOptions{mode: OnOpen}, opts, Option.split)
	adapter.Require(s.Own.backPressure == 0 || s.Own.mode.has(PerRecv|PerSend), constructor,
		"WithBackPressure: concerns messages, and WithStreamMode charges none")
	return s
}

func makeInterceptor(s *settings) *interceptor {
	return &interceptor{settings: s, exempt: newExempt(s.Own)}
}

func (i *interceptor) newPolicies(decide *admission.Policies[call]) *policies {
	ps := &policies{Policies: decide, needsOutcome: decide.NeedsRelease || i.Own.refundIf != nil}
	for _, p := range decide.All {
		ps.details = append(ps.details, newDetails(p.Name))
		if p.Limiter == nil { // of calls whose plan is not known
			continue
		}
		for one := range algo.Walk(p.Limiter) {
			if l, ok := one.(interface{ Multiplexed() }); ok {
				l.Multiplexed()
			}
		}
	}
	return ps
}

// policies returns the policies of c; nil if c passes unlimited, or is refused with the error.
func (i *interceptor) policies(c call) (*policies, error) {
	if i.exempt.covers(c.method) || i.Own.skip != nil && i.Own.skip(c.ctx, c.method) {
		return nil, nil
	}
	if i.fixed != nil {
		return i.fixed, nil
	}
	ps, err := i.plans.Choose(c)
	if err != nil {
		var v verdict
		i.unknown.Undecided(c.ctx, &v, err)
		return nil, i.answer(c, i.unknown, &v, true)
	}
	return ps, nil
}

// answer reports v and returns the error of a call that does not pass: a *statusError, or a
// status if the context has ended. With opening it sets the trailers of an admission.
func (i *interceptor) answer(c call, ps *policies, v *verdict, opening bool) error {
	switch {
	case v.Pass() && i.Observe == nil:
		return nil
	case v.Pass():
		ps.Report(c.ctx, v, c.method, int(codes.OK), func(p part) (sent telemetry.Sent) {
			if opening && i.Own.rateTrailers {
				sent.Policy, sent.Limit = rateItems(&p)
			}
			return sent
		})
		return nil
	case v.Blame == admission.Gone:
		st := status.FromContextError(v.Err)
		ps.Report(c.ctx, v, c.method, int(st.Code()), nil)
		return st.Err()
	}
	refused := ps.details[v.Gravest().Index].refuse(c.ctx, v)
	sent := telemetry.Sent{RetryAfter: time.Duration(v.Milliseconds()) * time.Millisecond, Pushback: refused.pushback}
	ps.Report(c.ctx, v, c.method, int(refused.status.Code()), func(part) telemetry.Sent { return sent })
	if i.Own.denied != nil {
		if st := i.Own.denied(c.ctx, refused.status, *v.Decision()); st.Code() != codes.OK {
			refused.status = st
		}
	}
	return refused
}

// admitted answers a call or the opening of a stream.
func (i *interceptor) admitted(c call, kept *algo.Lease, ps *policies, v *verdict) (ctx context.Context, trailer metadata.MD, err error) {
	if !v.Pass() || i.Observe != nil {
		if err := i.answer(c, ps, v, true); err != nil {
			return nil, nil, err
		}
	}
	if i.Own.rateTrailers {
		trailer = rateTrailer(v)
	}
	if kept == nil {
		return c.ctx, trailer, nil
	}
	return ps.WithLease(c.ctx, kept, v), trailer, nil
}
