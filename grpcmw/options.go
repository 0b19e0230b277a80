package grpcmw

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Option adjusts an interceptor when it is made. An option that a constructor
// does not take, and a value out of range, is a panic that names both.
type Option = admission.Option[call, interceptorOptions]

// interceptorOptions are the settings that only this package has.
type interceptorOptions struct {
	skip         func(ctx context.Context, fullMethod string) bool
	refundIf     func(codes.Code) bool
	denied       Answer
	exempt       []string
	mode         StreamMode
	backPressure time.Duration // of messages
	rateTrailers bool
}

type settings = admission.Config[call, interceptorOptions]

var (
	shared    admission.Options[call, interceptorOptions]
	newOption = admission.NewOption[call, interceptorOptions]
	notNil    = admission.NotNil
)

// The options that each kind of interceptor takes.
var (
	anywhere   = []string{"WithName", "WithExempt", "WithSkip", "WithMissingKey", "WithObserver"}
	onServer   = append(slices.Clone(anywhere), "WithCost", "WithOnError", "WithUnit", "WithRefundIf", "WithDenied", "WithLeaseInContext", "WithRateTrailers")
	forStreams = append(slices.Clone(onServer), "WithStreamMode", "WithBackPressure")
	forSeveral = forStreams[1:] // without WithName
	forDenial  = []string{"WithName"}
)

// WithName sets the policy's name, which clients see in the details of a
// denial: 1 to 64 letters, digits, dots, underscores and hyphens. The default
// describes the limit at the time of construction ("100-per-60s"); it is
// "default" if there is none then or the limiter has no description.
func WithName(name string) Option { return shared.Name(name) }

// Cost is the number of units that a call costs. 0 charges nothing and is
// always admitted; a negative cost is rejected with UNAVAILABLE. msg is the
// request of a unary call, the message of a stream that is charged by message,
// and nil when a stream is opened. Cost must not keep or change it.
type Cost func(ctx context.Context, fullMethod string, msg any) int64

// WithCost sets the cost of a call. The default is 1.
func WithCost(cost Cost) Option { return shared.Cost(cost.ofCall()) }

func (f Cost) ofCall() func(call) int64 {
	if f == nil {
		return nil
	}
	return func(c call) int64 { return f(c.ctx, c.method, c.msg) }
}

// WithUnit sets the unit of the costs of a limit over time, for the trailers of
// [WithRateTrailers]: [algo.Requests], the default, or [algo.ContentBytes].
// draft-ietf-httpapi-ratelimit-headers has no other units, so limits of tokens or money are sent
// without one.
func WithUnit(u algo.Unit) Option { return shared.Unit(u) }

// WithSkip lets calls for which skip is true pass unlimited, without an event. The
// default is none; see also [WithExempt].
func WithSkip(skip func(ctx context.Context, fullMethod string) bool) Option {
	return newOption("WithSkip", func(s *settings) error {
		s.Own.skip = skip
		return notNil(skip != nil)
	})
}

// WithRefundIf gives the charge of a call back if refund is true for the code that
// the handler answered with: count failures only, or do not count them. A handler
// that panics or exits keeps its charge, and so do the messages of a stream.
//
// The refund is the part of the charge that still counts, see [algo.Lease]. Do not
// refund codes that clients can provoke at will at the expense of the server: such
// calls are then not limited.
func WithRefundIf(refund func(codes.Code) bool) Option {
	return newOption("WithRefundIf", func(s *settings) error {
		s.Own.refundIf = refund
		return notNil(refund != nil)
	})
}

// Answer replaces the status of a refused call. st is the status that would have
// been sent, d the limiter's decision, which is zero if there was none. The result
// nil, or with the code OK, keeps st.
type Answer func(ctx context.Context, st *status.Status, d algo.Decision) *status.Status

// WithDenied replaces the status of denied calls, also after an error. The
// pushback trailer and the event stay.
func WithDenied(answer Answer) Option {
	return newOption("WithDenied", func(s *settings) error {
		s.Own.denied = answer
		return notNil(answer != nil)
	})
}

// FailPolicy selects the treatment of calls that could not be decided, because
// the limiter or the key function failed.
type FailPolicy = admission.FailPolicy

const (
	// FailOpen lets the call pass, not limited. A client that can make the key
	// function fail, with a malformed token for example, is not limited at all.
	FailOpen = admission.FailOpen
	// FailClosed answers UNAVAILABLE.
	FailClosed = admission.FailClosed
)

// WithOnError sets the treatment of calls that could not be decided. The default
// is FailClosed.
//
// Some calls are refused in any case, because clients may be able to provoke
// the error: a negative cost, and an error of the limiter that wraps
// algo.ErrWait, because admission would outlast the deadline. A call whose
// context has ended meanwhile gets the status of the context.
//
// Failures are logged with package log, at most once in 10 s, with the code
// grpcmw.undecided.
func WithOnError(p FailPolicy) Option { return shared.OnError(p) }

// MissingKey selects the treatment of calls without a key: [Shared], [Deny], [Skip]
// or the result of [DenyWith] or [FallbackTo].
type MissingKey = admission.MissingKey[call]

type missingMode = admission.MissingMode[call]

// The simple policies for missing keys.
const (
	// Shared makes all calls without a key share one bucket of the limiter,
	// under the key "~missing": they are limited as one caller.
	Shared missingMode = admission.Shared
	// Deny answers UNAUTHENTICATED.
	Deny missingMode = admission.Deny
	// Skip lets the call pass, not limited. A client can then avoid the limit
	// by leaving the identity out.
	Skip missingMode = admission.Skip
)

// DenyWith is [Deny] with another code, such as INVALID_ARGUMENT for a key that is
// no identity. It panics if code is OK or no code.
func DenyWith(code codes.Code) MissingKey {
	adapter.Require(code != codes.OK && code <= codes.Unauthenticated, "DenyWith", "the code is "+code.String())
	return admission.DenyWith[call](code)
}

// FallbackTo uses another key function. If that finds no key either, the call
// shares the bucket of [Shared]. The two functions should not give equal keys
// for different callers. The functions of package keyfunc
// do not, except rpckey.Service, whose keys look like any name that a caller may choose. It
// panics if key is nil.
func FallbackTo(key keyfunc.RPC) MissingKey { return admission.FallbackTo(adapter, ofCall(key)) }

// WithMissingKey sets the treatment of calls without the identity that the key
// function looks for ([keyfunc.ErrNoKey]). The default is Shared. For other
// errors of the key function see [WithOnError].
func WithMissingKey(p MissingKey) Option { return shared.MissingKey(p) }

// Event is one decision, as an observer gets it; see [WithObserver].
type Event = admission.Event

// Result is the class of a decision.
type Result = admission.Result

// The results.
const (
	Allowed      = admission.Allowed
	Denied       = admission.Denied
	Canceled     = admission.Canceled
	FailedOpen   = admission.FailedOpen
	FailedClosed = admission.FailedClosed
)

// WithObserver sets a function that is called once for each decision, in the
// goroutine of the call. It must return quickly and may be called from many
// goroutines at once.
func WithObserver(observe func(Event)) Option { return shared.Observer(observe) }

// WithLeaseInContext makes the lease available to the handler through
// [LeaseFrom]. It costs two allocations a call.
func WithLeaseInContext() Option { return shared.LeaseInContext() }
