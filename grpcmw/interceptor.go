package grpcmw

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// call is a call, or a message of a stream, as keys and costs see it.
type call struct {
	ctx    context.Context
	method string
	msg    any
}

func ofCall(key keyfunc.RPC) func(call) (string, error) {
	if key == nil {
		return nil
	}
	return func(c call) (string, error) { return key(c.ctx, c.method) }
}

var adapter = admission.Adapter{Package: "grpcmw", Transport: telemetry.GRPC}

// interceptor is one policy with its options. It does not change once it is made,
// and all interceptors that are made together share it.
type interceptor struct {
	*admission.Policy[call]
	interceptorOptions
	exempt  exempt
	answers *answers
	names   []admission.Named // of the policies
	all     []*interceptor    // one for each of several policies; nil: one
	// needsOutcome: the outcome decides on a slot or a charge.
	needsOutcome bool
}

// newInterceptor panics on every mistake that can be seen without a call.
func newInterceptor(a admission.Adapter, constructor string, takes []string, l algo.Limiter, key keyfunc.RPC, opts []Option) *interceptor {
	a.Require(!admission.IsNil(l), constructor, "the limiter is nil")
	a.Require(key != nil, constructor, "the key function is nil; rpckey.Global gives all calls one limit")
	s := configure(a, constructor, takes, opts)
	return makeInterceptor(s, admission.NewPolicy(a, &s.Settings, l, ofCall(key), constructor))
}

func configure(a admission.Adapter, constructor string, takes []string, opts []Option) *settings {
	s := admission.Configure(a, constructor, takes, interceptorOptions{domain: "sluice", mode: OnOpen}, opts)
	a.Require(s.Own.backPressure == 0 || s.Own.mode.has(PerRecv|PerSend), constructor,
		"WithBackPressure: concerns messages, and WithStreamMode charges none")
	return s
}

func makeInterceptor(s *settings, p *admission.Policy[call]) *interceptor {
	i := &interceptor{
		Policy: p, interceptorOptions: s.Own, exempt: newExempt(s.Own), names: []admission.Named{p.Named()},
		answers: newAnswers(p.Name, s.Own.domain),
	}
	i.needsOutcome = s.Own.refundIf != nil || p.Limiter != nil && algo.OccupiesSlot(p.Limiter)
	for one := range algo.Walk(p.Limiter) {
		if l, ok := one.(interface{ Multiplexed() }); ok {
			l.Multiplexed()
		}
	}
	return i
}

// attemptsKey is the metadata of gRFC A6 that a client adds to every attempt
// but the first: the number of attempts before.
const attemptsKey = "grpc-previous-rpc-attempts"

// reserve is the share of the limit that the call of ctx must leave to others.
func (i *interceptor) reserve(ctx context.Context) float64 {
	if i.retryReserve > 0 {
		if attempts := metadata.ValueFromIncomingContext(ctx, attemptsKey); len(attempts) > 0 && attempts[0] != "0" {
			return i.retryReserve
		}
	}
	return 0
}

// passes reports whether a call is not limited at all.
func (i *interceptor) passes(ctx context.Context, method string) bool {
	return i.exempt.covers(method) || i.skip != nil && i.skip(ctx, method)
}

// passesUnary is passes for a unary call.
func (i *interceptor) passesUnary(ctx context.Context, method string) bool {
	return i.exempt.unary(method) || i.passes(ctx, method)
}

// decide decides on a call. With a nil error the call may start. Otherwise the
// error is the answer: a *statusError, or a status if the context has ended.
func (i *interceptor) decide(ctx context.Context, lease *admission.Lease, method string, msg any) error {
	if i.all != nil {
		return i.decideAll(call{ctx, method, msg}, lease)
	}
	lease.Policies = i.names
	a := admission.Attempt{Reserve: i.reserve(ctx)}
	r := i.Admit(ctx, call{ctx, method, msg}, &lease.Lease, &a)
	if r == Allowed && i.Observe == nil {
		return nil
	}
	return i.answer(ctx, &a, r, &lease.Decision, method, true)
}

// answer reports a decision and turns it into the error of the call. opening:
// an admission may have trailers.
func (i *interceptor) answer(ctx context.Context, a *admission.Attempt, r Result, d *algo.Decision, method string, opening bool) error {
	switch r {
	case admission.Skipped:
		return nil
	case Allowed, FailedOpen:
		var sent telemetry.Sent
		if opening && i.rateTrailers && i.Observe != nil {
			sent.Policy, sent.Limit = i.rateItems(d)
		}
		i.Report(a, r, d, method, int(codes.OK), sent)
		return nil
	case Canceled:
		st := status.FromContextError(a.Err)
		i.Report(a, r, d, method, int(st.Code()), telemetry.Sent{})
		return st.Err()
	}
	sent, code, refused := i.refuse(ctx, a, r, d)
	i.Report(a, r, d, method, int(code), sent)
	return i.custom(ctx, refused, d)
}
