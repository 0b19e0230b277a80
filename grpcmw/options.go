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

// Option adjusts an interceptor when it is made. An option that a constructor
// does not take, and a value out of range, is a panic that names both.
type Option struct {
	name  string
	apply func(*settings) error
}

func newOption(name string, apply func(*settings) error) Option { return Option{name, apply} }

func (o Option) split() (string, func(*settings) error) { return o.name, o.apply }

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

type (
	settings = admission.Config[call, interceptorOptions]
	verdict  = admission.Verdict[call]
	part     = admission.Part[call]
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

// Cost is the number of units that a call costs. 0 charges nothing, and is denied only to a key that
// is banned or finds the table full ([algo.DenyNew]), and by [algo.DenyAll]; a negative cost is rejected
// with UNAVAILABLE. msg is the
// request of a unary call, the message of a stream that is charged by message,
// and nil when a stream is opened. Cost must not keep or change it.
type Cost func(ctx context.Context, fullMethod string, msg any) int64

// WithCost sets the cost of a call. The default is 1.
func WithCost(cost Cost) Option { return newOption(shared.Cost(cost.ofCall())) }

func (f Cost) ofCall() func(call) int64 {
	if f == nil {
		return nil
	}
	return func(c call) int64 { return f(c.ctx, c.method, c.msg) }
}

// WithSkip lets calls for which skip is true pass unlimited, without an event. The
// default is none; see also [WithExempt], and rpckey.Within for the addresses of some networks.
func WithSkip(skip func(ctx context.Context, fullMethod string) bool) Option {
	return newOption("WithSkip", func(s *settings) error {
		s.Own.skip = skip
		return option.NotNil(skip != nil)
	})
}

// WithRefundIf gives the charge of a call back if refund is true for the code that
// the handler answered with: count failures only, or do not count them. A handler
// that panics or exits keeps its charge, and so do the messages of a stream. So does a call
// whose client has gone, or whose deadline has passed, if it failed or was given up (CANCELED):
// a client could avoid the charge by hanging up.
//
// The refund is the part of the charge that still counts, see [algo.Lease]. Do not
// refund codes that clients can provoke at will at the expense of the server: such
// calls are then not limited.
func WithRefundIf(refund func(codes.Code) bool) Option {
	return newOption("WithRefundIf", func(s *settings) error {
		s.Own.refundIf = refund
		return option.NotNil(refund != nil)
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
		return option.NotNil(answer != nil)
	})
}

// WithFailOpen lets calls pass that could not be decided, because the limiter or the key
// function failed. The default is to answer them with UNAVAILABLE. A client that can make the key
// function fail, with a malformed token for example, is then not limited at all.
//
// Some calls are refused in any case, because clients may be able to provoke
// the error: a negative cost, and an error of the limiter that wraps
// algo.ErrWait, because admission would outlast the deadline. A call whose
// context has ended meanwhile gets the status of the context.
//
// Failures are logged with package log, at most once in 10 s, with the code
// grpcmw.undecided.
func WithFailOpen() Option { return newOption(shared.FailOpen()) }

// The treatments of calls without a key, beside a code; see [WithMissingKey].
const (
	// Shared makes all calls without a key share one bucket of the limiter,
	// under the key "~missing": they are limited as one caller.
	Shared codes.Code = admission.Shared
	// Skip lets the call pass, not limited. A client can then avoid the limit
	// by leaving the identity out.
	Skip codes.Code = admission.Skip
)

// WithMissingKey sets the treatment of calls without the identity that the key
// function looks for ([keyfunc.ErrNoKey]): [Shared], the default, [Skip], or a code, with which
// they are answered, such as UNAUTHENTICATED. If nine of ten calls lack it, Shared and Skip log
// that, with the code keyfunc.no_key. To use another identity instead, see rpckey.Or. For
// other errors of the key function see [WithFailOpen].
func WithMissingKey(treatment codes.Code) Option {
	return newOption(shared.MissingKey(int(treatment), int(codes.Canceled), int(codes.Unauthenticated)))
}

// StreamMode is the set of events on a stream that are charged. Modes can be combined with |.
type StreamMode uint8

const (
	// OnOpen charges the stream once, when it is opened. A slot of an
	// in-flight limiter is held until it ends.
	OnOpen StreamMode = 1 << iota
	// PerRecv charges each message received, after it has arrived. A slot of
	// an in-flight limiter is held until the handler asks for the next message.
	PerRecv
	// PerSend charges each message before it is sent. A slot is held until
	// the message is handed to the transport.
	PerSend
)

const everyMode = OnOpen | PerRecv | PerSend

func (m StreamMode) has(part StreamMode) bool { return m&part != 0 }

// WithStreamMode sets the events on a stream that are charged; the default is OnOpen.
// A stream that is charged by message only is itself free to open: combine
// PerRecv with OnOpen, or limit both with two interceptors.
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
// It concerns messages, so it needs [WithStreamMode] with PerRecv or PerSend.
// To make the opening of streams wait, give the limiter itself algo.MaxWait.
func WithBackPressure(most time.Duration) Option {
	return newOption("WithBackPressure", func(s *settings) error {
		s.Own.backPressure = most
		if most <= 0 {
			return fmt.Errorf("is %v, want above 0", most)
		}
		return nil
	})
}

// WithObserver sets a function that is called once for each decision, in the
// goroutine of the call. It must return quickly and may be called from many
// goroutines at once.
func WithObserver(observe func(telemetry.Event)) Option { return newOption(shared.Observer(observe)) }

// WithLeaseInContext makes the lease available to the handler through
// [algo.LeaseFrom] and package meter. It costs two allocations a call.
func WithLeaseInContext() Option { return newOption(shared.LeaseInContext()) }
