package grpcmw

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/keyfunc"
)

// Option adjusts an interceptor. A constructor panics on an option that it does not
// take and on a value out of range, with a message that names both.
type Option struct {
	name  string
	apply func(*settings) error
}

func newOption(name string, apply func(*settings) error) Option { return Option{name, apply} }

func (o Option) split() (string, func(*settings) error) { return o.name, o.apply }

// interceptorOptions holds the settings that only this package has.
type interceptorOptions struct {
	skip         func(ctx context.Context, fullMethod string) bool
	refundIf     func(codes.Code) bool
	denied       Answer
	exempt       []string
	mode         StreamMode
	backPressure time.Duration // of messages
	rateTrailers bool
}

type (
	settings = admission.Config[call, interceptorOptions]
	verdict  = admission.Verdict[call]
	part     = admission.Part[call]
)

// call is a call, or a message of a stream, in the form that keys and costs need.
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

var shared admission.Options[call, interceptorOptions]

// The options that each kind of interceptor takes.
var (
	anywhere   = []string{"WithName", "WithExempt", "WithSkip", "WithMissingKey", "WithObserver"}
	onServer   = append(slices.Clone(anywhere), "WithCost", "WithFailOpen", "WithRefundIf", "WithDenied", "WithLeaseInContext", "WithRateTrailers")
	forStreams = append(slices.Clone(onServer), "WithStreamMode", "WithBackPressure")
	forSeveral = forStreams[1:] // without WithName
	forDenial  = []string{"WithName", "WithRateTrailers"}
)

// WithName sets the policy's name, which clients see in the details of a
// denial: 1 to 64 letters, digits, dots, underscores and hyphens. The default
// describes the limit at the time of construction ("100-per-minute"); it is
// "default" if there is none then or the limiter has no description.
func WithName(name string) Option { return newOption(shared.Name(name)) }

// Cost returns the units that a call costs. A cost of 0 charges nothing; it is denied only for a
// banned key, for a new key in a full table ([algo.DenyNew]), and by [algo.DenyAll]. A negative cost
// is rejected with UNAVAILABLE. msg is the request of a unary call, the message of a stream that is
// charged by message, and nil when a stream is opened. Cost must not keep or change it.
type Cost func(ctx context.Context, fullMethod string, msg any) int64

// WithCost sets the cost of a call. The default is 1.
func WithCost(cost Cost) Option { return newOption(shared.Cost(cost.ofCall())) }

func (f Cost) ofCall() func(call) int64 {
	if f == nil {
		return nil
	}
	return func(c call) int64 { return f(c.ctx, c.method, c.msg) }
}

// WithSkip passes calls for which skip is true unlimited, without an event. The
// default is none; see also [WithExempt], and rpckey.Within for networks.
func WithSkip(skip func(ctx context.Context, fullMethod string) bool) Option {
	return newOption("WithSkip", func(s *settings) error {
		s.Own.skip = skip
		return option.NotNil(skip != nil)
	})
}

// WithRefundIf refunds the charge of a call if refund is true for the code of the
// handler's answer, for example to count only failures. A handler that panics or exits
// keeps its charge, and so do the messages of a stream. So does a call whose client has
// gone, or whose deadline has passed, if it failed or was given up (CANCELED): otherwise
// a client could avoid the charge by hanging up.
//
// The refund is the part of the charge that still counts, see [algo.Lease]. Do not
// refund codes that clients can provoke at the expense of the server: such calls would
// not be limited.
func WithRefundIf(refund func(codes.Code) bool) Option {
	return newOption("WithRefundIf", func(s *settings) error {
		s.Own.refundIf = refund
		return option.NotNil(refund != nil)
	})
}

// Answer replaces the status of a refused call. st is the default status, d the
// limiter's decision, zero without one. A nil result, or one with the code OK, keeps
// st.
type Answer func(ctx context.Context, st *status.Status, d algo.Decision) *status.Status

// WithDenied replaces the status of denied calls, and of those refused after an
// error. The pushback trailer and the event stay.
func WithDenied(answer Answer) Option {
	return newOption("WithDenied", func(s *settings) error {
		s.Own.denied = answer
		return option.NotNil(answer != nil)
	})
}

// WithFailOpen passes calls that could not be decided, because the limiter or the key
// function failed; the default is to answer them with UNAVAILABLE. A client that can make the
// key function fail, for example with a malformed token, is then not limited at all.
//
// Calls with a negative cost, or with an error that wraps algo.ErrWait because
// admission would outlast the deadline, are still refused: clients may be able to
// provoke these. A call whose context has ended gets the status of the context.
//
// The interceptor logs failures with package log, at most once in 10 s, with the code
// grpcmw.undecided.
func WithFailOpen() Option { return newOption(shared.FailOpen()) }

// The treatments of calls without a key, beside a code; see [WithMissingKey].
const (
	// Shared limits all calls without a key as one caller, under the key
	// "~missing".
	Shared codes.Code = admission.Shared
	// Skip passes the call unlimited. A client can then avoid the limit by
	// omitting the identity.
	Skip codes.Code = admission.Skip
)

// WithMissingKey sets the treatment of calls without the identity that the key function
// looks for ([keyfunc.ErrNoKey]): [Shared], the default, [Skip], or the code of the answer,
// such as UNAUTHENTICATED. Shared and Skip log with the code keyfunc.no_key if nine of ten
// calls lack the identity. To use another identity instead, see rpckey.Or. For other errors
// of the key function see [WithFailOpen].
func WithMissingKey(treatment codes.Code) Option {
	return newOption(shared.MissingKey(int(treatment), int(codes.Canceled), int(codes.Unauthenticated)))
}

// StreamMode is the set of charged events on a stream. Combine modes with |.
type StreamMode uint8

const (
	// OnOpen charges the stream once, when it is opened, and holds a slot of an
	// in-flight limiter until the stream ends.
	OnOpen StreamMode = 1 << iota
	// PerRecv charges each received message after it has arrived, and holds a slot
	// of an in-flight limiter until the handler asks for the next message.
	PerRecv
	// PerSend charges each message before it is sent, and holds a slot until the
	// transport has the message.
	PerSend
)

const everyMode = OnOpen | PerRecv | PerSend

func (m StreamMode) has(part StreamMode) bool { return m&part != 0 }

// WithStreamMode sets the charged events on a stream; the default is OnOpen. Without
// OnOpen, opening a stream is free: combine PerRecv with OnOpen, or limit both with
// two interceptors.
func WithStreamMode(m StreamMode) Option {
	return newOption("WithStreamMode", func(s *settings) error {
		s.Own.mode = m
		if m == 0 || m > everyMode {
			return fmt.Errorf("is %d, want OnOpen, PerRecv, PerSend or several of them", m)
		}
		return nil
	})
}

// WithBackPressure makes a message that its quota denies wait up to most,
// instead of ending the stream. While a received message waits, no further
// one is read, so that flow control makes the sender wait too. A message that
// has to wait longer than most, or than the stream's deadline, ends the stream,
// and so does overload. The default is not to wait; algo.Forever waits as long
// as the stream lives.
//
// It needs [WithStreamMode] with PerRecv or PerSend. To make the opening of streams
// wait, give the limiter itself algo.MaxWait.
func WithBackPressure(most time.Duration) Option {
	return newOption("WithBackPressure", func(s *settings) error {
		s.Own.backPressure = most
		if most <= 0 {
			return fmt.Errorf("is %v, want above 0", most)
		}
		return nil
	})
}

// WithObserver sets a function that receives each decision once. Calls run observe
// concurrently on their goroutines, so it must be quick.
func WithObserver(observe func(telemetry.Event)) Option { return newOption(shared.Observer(observe)) }

// WithLeaseInContext makes the lease available to the handler through
// [algo.LeaseFrom] and package meter. It costs two allocations a call.
func WithLeaseInContext() Option { return newOption(shared.LeaseInContext()) }
