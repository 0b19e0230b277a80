package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Option adjusts a middleware. An option that its constructor
// does not take, and a value out of range, make the constructor panic with a
// message that names both.
type Option = admission.Option[*http.Request, ownOptions]

// ownOptions are the settings that only this package has.
type ownOptions struct {
	skip     func(*http.Request) bool
	headers  HeadersMode // IETF where several are sent
	legacy   HeadersMode // Legacy or LegacyEpoch; IETF: neither
	denied   http.Handler
	refundIf func(status int) bool
}

type settings = admission.Config[*http.Request, ownOptions]

var (
	adapter = admission.Adapter{Package: "httpmw", Transport: telemetry.HTTP}

	shared    admission.Options[*http.Request, ownOptions]
	newOption = admission.NewOption[*http.Request, ownOptions]
	notNil    = admission.NotNil
)

// The options that each constructor takes.
var (
	forLimits = []string{"WithCost", "WithUnit", "WithSkip", "WithHeaders", "WithDenied", "WithRefundIf",
		"WithOnError", "WithMissingKey", "WithObserver", "WithLeaseInContext"}
	forLimit  = append([]string{"WithName"}, forLimits...)
	forDenial = []string{"WithName", "WithUnit", "WithHeaders", "WithDenied"}
)

func configure(a admission.Adapter, constructor string, takes []string, opts []Option) *settings {
	return admission.Configure(a, constructor, takes, ownOptions{}, opts)
}

// WithName sets the name of the policy in the RateLimit fields, in problem
// details and in events: 1 to 64 letters, digits, dots, underscores and
// hyphens. The default describes the limit at the time of wiring,
// "100-per-60s"; it is "default" if the limiter has no description or, as an
// adaptive one, no limit then. Policies of one service need different names.
func WithName(name string) Option { return shared.Name(name) }

// WithCost sets the cost of a request in units; the default is 1. Zero charges
// nothing and is always admitted.
//
// A negative cost is a mistake that a client may be able to provoke (the
// ContentLength of a body of unknown length is -1), so it must not be free:
// the request is rejected with 503, whatever WithOnError is set to, nothing is
// charged, and the event has the error algo.ErrCost. In Limits it is the cost
// of policies without a Cost of their own. It must not read the body.
func WithCost(cost func(*http.Request) int64) Option { return shared.Cost(cost) }

// WithUnit sets the unit of the costs of a limit over time, for the RateLimit-Policy field:
// [algo.Requests], the default, or [algo.ContentBytes]. draft-ietf-httpapi-ratelimit-headers
// has no other units, so limits of tokens or money are sent without one.
func WithUnit(u algo.Unit) Option { return shared.Unit(u) }

// WithSkip lets requests for which skip is true pass unlimited, without
// fields and without an event. The default is none.
func WithSkip(skip func(*http.Request) bool) Option {
	return newOption("WithSkip", func(s *settings) error {
		s.Own.skip = skip
		return notNil(skip != nil)
	})
}

// WithHeaders sets which fields advertise the limit to clients; the default is
// IETF. A limit that is switched off or on trial ([algo.Shadow]) is not advertised.
//
// [IETF] can be given together with [Legacy] or [LegacyEpoch]: then both are sent.
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

// WithDenied replaces the answer to denied requests, also to requests that are
// refused after an error. When h is called, the RateLimit fields, Retry-After,
// Retry-After-Ms and Cache-Control are set already; [DenialFrom] returns the status that
// would have been sent and the decision. h has to write the status itself.
// Package httpmw/rpc has one for gRPC, gRPC-Web and Connect.
//
// Over HTTP/1.1 net/http reads up to 256 KiB of an unread body before it sends the answer, as
// long as its client takes to send it. An h that sets Connection: close answers at once.
func WithDenied(h http.Handler) Option {
	return newOption("WithDenied", func(s *settings) error {
		s.Own.denied = h
		return notNil(!admission.IsNil(h))
	})
}

// WithRefundIf gives the charge of a request back if refund is true for the
// status of its response: count failures only, or do not count them. A
// handler that panics before it has written a status counts as 500. Hijacked
// connections have no status and keep their charge, and so does a failure (5xx
// or panic) of a request whose client has gone: a client could avoid the charge by
// hanging up.
//
// The refund is the part of the charge that still counts, see [algo.Lease]. Do
// not refund
// statuses that clients can provoke at will at the expense of the server: such
// requests are then not limited.
func WithRefundIf(refund func(status int) bool) Option {
	return newOption("WithRefundIf", func(s *settings) error {
		s.Own.refundIf = refund
		return notNil(refund != nil)
	})
}

// FailPolicy selects the treatment of requests that could not be decided.
type FailPolicy = admission.FailPolicy

const (
	// FailOpen lets the request pass, not limited. A client that can make the
	// key function fail, with a malformed token for example, is not limited at
	// all.
	FailOpen = admission.FailOpen
	// FailClosed answers 503.
	FailClosed = admission.FailClosed
)

// WithOnError sets the treatment of requests that could not be decided,
// because the limiter or the key function failed. The default is FailClosed.
// Requests with a cost out of range, with an error that wraps algo.ErrWait, or
// with an ended context are rejected in any case. Failures are logged with
// package log, at most once in 10 s, with the code httpmw.undecided.
func WithOnError(p FailPolicy) Option { return shared.OnError(p) }

// MissingKey selects the treatment of requests without a key: [Shared], [Deny],
// [Skip] or the result of [DenyWith] or [FallbackTo].
type MissingKey = admission.MissingKey[*http.Request]

type missingMode = admission.MissingMode[*http.Request]

// The simple policies for missing keys.
const (
	// Shared makes all requests without a key share one bucket of the limiter,
	// under the key "~missing": they are limited as one client.
	Shared missingMode = admission.Shared
	// Deny answers 401 without Retry-After. RFC 9110 wants a WWW-Authenticate
	// field in it: set it in a handler further out, or see [DenyWith].
	Deny missingMode = admission.Deny
	// Skip lets the request pass, not limited by this policy. A client can then
	// avoid the limit by leaving the identity out.
	Skip missingMode = admission.Skip
)

// DenyWith is [Deny] with another status, such as 400 for a key that is no
// identity. It panics unless status is 400 to 499.
func DenyWith(status int) MissingKey {
	adapter.Require(status >= 400 && status <= 499, "DenyWith", fmt.Sprintf("the status is %d, want 400 to 499", status))
	return admission.DenyWith[*http.Request](status)
}

// FallbackTo uses another key function. If that finds no key either, the
// request shares the bucket of [Shared]. The two functions should not give
// equal keys for different clients. The functions of package keyfunc
// do not, except keyfunc.Host, whose keys look like any name that a client may choose. It
// panics if key is nil.
func FallbackTo(key keyfunc.HTTP) MissingKey { return admission.FallbackTo(adapter, key) }

// WithMissingKey sets the treatment of requests without the identity that the
// key function looks for ([keyfunc.ErrNoKey]). The default is Shared.
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

// WithObserver sets a function that gets every decision before the handler
// runs: an admission once for each policy, a denial once for each policy that
// had no room. Requests that no limit applies to ([WithSkip], [Skip]) are no
// decisions. It is called on the request's goroutine, from many at once, and
// should be quick.
func WithObserver(observe func(Event)) Option { return shared.Observer(observe) }

// WithLeaseInContext puts the lease into the context of the request, for
// [LeaseFrom]. It is an option because it copies the request, which costs more
// than many a decision.
func WithLeaseInContext() Option { return shared.LeaseInContext() }
