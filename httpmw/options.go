package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/option"
)

// Option adjusts a middleware. A constructor panics on an option that it does not
// take and on a value out of range, with a message that names both.
type Option struct {
	name  string
	apply func(*settings) error
}

func newOption(name string, apply func(*settings) error) Option { return Option{name, apply} }

func (o Option) split() (string, func(*settings) error) { return o.name, o.apply }

// ownOptions holds the settings that only this package has.
type ownOptions struct {
	skip     func(*http.Request) bool
	headers  HeadersMode // IETF if several are sent
	legacy   HeadersMode // Legacy or LegacyEpoch; IETF: neither
	denied   http.Handler
	refundIf func(status int) bool
	cause    bool // in problem details
}

type (
	settings = admission.Config[*http.Request, ownOptions]
	verdict  = admission.Verdict[*http.Request]
	part     = admission.Part[*http.Request]
)

var (
	adapter = admission.Adapter{Package: "httpmw", Transport: telemetry.HTTP}

	shared admission.Options[*http.Request, ownOptions]
)

// The options that each constructor takes.
var (
	forLimits = []string{"WithCost", "WithSkip", "WithHeaders", "WithCause", "WithDenied", "WithRefundIf",
		"WithFailOpen", "WithMissingKey", "WithObserver", "WithLeaseInContext"}
	forLimit  = append([]string{"WithName"}, forLimits...)
	forAnswer = []string{"WithName", "WithHeaders", "WithCause", "WithDenied"}
)

func configure(a admission.Adapter, constructor string, takes []string, opts []Option) *settings {
	return admission.Configure(a, constructor, takes, ownOptions{}, opts, Option.split)
}

// WithName sets the name of the policy in the RateLimit fields, in problem
// details and in events: 1 to 64 letters, digits, dots, underscores and
// hyphens. The default describes the limit at the time of wiring,
// "100-per-minute"; it is "default" if the limiter has no description or, as an
// adaptive one, no limit then. Policies of one service need different names.
func WithName(name string) Option { return newOption(shared.Name(name)) }

// WithCost sets the cost of a request in units; the default is 1. A cost of 0 charges nothing; it is
// denied only for a banned key, for a new key in a full table ([algo.DenyNew]), and by [algo.DenyAll].
//
// A negative cost is a mistake that a client may be able to provoke (the
// ContentLength of a body of unknown length is -1), so it must not be free:
// the request gets 503, with WithFailOpen too, nothing is charged, and the
// event has the error algo.ErrCost. In Limits, cost applies to policies without
// a Cost of their own. It must not read the body.
func WithCost(cost func(*http.Request) int64) Option { return newOption(shared.Cost(cost)) }

// WithSkip passes requests for which skip is true unlimited, without fields and
// without an event. The default is none. [keyfunc.IPConfig.Within] makes a skip for
// networks.
func WithSkip(skip func(*http.Request) bool) Option {
	return newOption("WithSkip", func(s *settings) error {
		s.Own.skip = skip
		return option.NotNil(skip != nil)
	})
}

// HeadersMode selects the fields that advertise limits to clients.
type HeadersMode uint8

const (
	// IETF sends RateLimit-Policy and RateLimit as structured fields
	// (draft-ietf-httpapi-ratelimit-headers-11, RFC 9651). Further limits on
	// the same request add their own lines.
	IETF HeadersMode = iota
	// Legacy sends X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset of the tightest limit, with the seconds until its whole
	// quota is back.
	Legacy
	// None sends only Retry-After on denials. Use it if the state of the limit
	// helps an attacker: logins, one-time passwords.
	None
	// LegacyEpoch is Legacy with the reset as Unix time in seconds.
	LegacyEpoch
)

// WithHeaders sets the fields that advertise the limit to clients; the default is
// IETF. [IETF] and [Legacy] or [LegacyEpoch] together send both. A limit that is
// switched off or on trial ([algo.Shadow]) is not advertised.
func WithHeaders(modes ...HeadersMode) Option {
	return newOption("WithHeaders", func(s *settings) error {
		if len(modes) == 0 {
			return errors.New("no mode is given")
		}
		s.Own.headers = slices.Min(modes)
		for i, mode := range modes {
			switch {
			case mode > LegacyEpoch:
				return fmt.Errorf("is %d, want IETF, Legacy, LegacyEpoch or None", mode)
			case slices.Contains(modes[:i], mode), len(modes) > 1 && mode == None:
				return errors.New("the modes exclude one another")
			case mode == Legacy, mode == LegacyEpoch:
				if s.Own.legacy != IETF {
					return errors.New("the modes exclude one another")
				}
				s.Own.legacy = mode
			}
		}
		return nil
	})
}

// WithCause adds the cause of a denial to its problem details, as "cause":"deadline", if the
// limiter states one: see [algo.Cause]. It is off by default, because it tells clients about the
// server. Events and logs always have it.
func WithCause() Option {
	return newOption("WithCause", option.Sets(func(s *settings) { s.Own.cause = true }))
}

// WithDenied makes h answer denied requests, and those refused after an error. h must write the
// status; [DenialFrom] returns the default status and the decision. Before h runs, the middleware
// sets the RateLimit fields, Retry-After, Retry-After-Ms and Cache-Control, and removes the fields
// of outer handlers for caches, ranges, digests and validators. Package httpmw/rpc has an h for
// gRPC, gRPC-Web and Connect.
//
// Over HTTP/1.1 net/http waits for up to 256 KiB of an unread body before it sends the answer.
// An h that sets Connection: close answers at once.
func WithDenied(h http.Handler) Option {
	return newOption("WithDenied", func(s *settings) error {
		s.Own.denied = h
		return option.NotNil(!admission.IsNil(h))
	})
}

// WithRefundIf refunds the charge of a request if refund is true for the status of its
// response, for example to count only failures. A panic before a status counts as 500. Hijacked
// connections have no status and keep their charge. So does a request whose client has gone, or
// whose own time limit has passed, if it failed (5xx, such a gRPC code, a panic) or was given up
// (499, CANCELED): otherwise a client could avoid the charge by hanging up.
//
// The refund is the part of the charge that still counts, see [algo.Lease]. Do not refund
// statuses that clients can provoke at the expense of the server: such requests would not be
// limited.
func WithRefundIf(refund func(status int) bool) Option {
	return newOption("WithRefundIf", func(s *settings) error {
		s.Own.refundIf = refund
		return option.NotNil(refund != nil)
	})
}

// WithFailOpen passes requests that could not be decided, because the limiter or the key
// function failed; the default is to answer them with 503. A client that can make the key
// function fail, for example with a malformed token, is then not limited at all.
//
// Requests with a cost out of range, an error that wraps algo.ErrWait, or an ended
// context are still rejected. The middleware logs failures with package log, at most
// once in 10 s, with the code httpmw.undecided.
func WithFailOpen() Option { return newOption(shared.FailOpen()) }

// The treatments of requests without a key, beside a status; see [WithMissingKey].
const (
	// Shared limits all requests without a key as one client, under the key
	// "~missing".
	Shared = admission.Shared
	// Skip passes the request without this policy. A client can then avoid the
	// limit by omitting the identity.
	Skip = admission.Skip
)

// WithMissingKey sets the treatment of requests without the identity that the key
// function looks for ([keyfunc.ErrNoKey]): [Shared], the default, [Skip], or a status from
// 400 to 499, sent without Retry-After. Shared and Skip log with the code keyfunc.no_key if
// nine of ten requests lack the identity. RFC 9110 requires a WWW-Authenticate field with
// 401: set it in an outer handler. To use another identity instead, see [keyfunc.Or].
func WithMissingKey(treatment int) Option { return newOption(shared.MissingKey(treatment, 400, 499)) }

// WithObserver sets a function that receives every decision before the handler
// runs: an admission once for each policy, a denial once for each policy that
// had no room. Requests that no limit applies to ([WithSkip], [Skip]) are not
// reported. The middleware calls observe concurrently on the requests' goroutines,
// so it must be quick.
func WithObserver(observe func(telemetry.Event)) Option { return newOption(shared.Observer(observe)) }

// WithLeaseInContext puts the lease into the context of the request, for
// [algo.LeaseFrom] and package meter. It is an option because it copies the request,
// which can cost more than the decision.
func WithLeaseInContext() Option { return newOption(shared.LeaseInContext()) }
