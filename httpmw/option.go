package httpmw

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/keyfunc"
)

// Option adjusts a middleware or a transport. One that its constructor does
// not take makes the constructor panic with a message that names both.
type Option struct {
	name  string
	apply func(*config)
}

// config is what options write to.
type config struct {
	name       string
	cost       func(*http.Request) int64
	skip       func(*http.Request) bool
	headers    HeadersMode
	denied     http.Handler
	refundIf   func(status int) bool
	onError    FailPolicy
	missing    MissingKey
	observe    func(Event)
	exposes    bool // the lease is put into the context
	maxServers int
}

// optionsOf lists what each constructor takes.
var optionsOf = map[string][]string{
	"Limit": {"WithName", "WithCost", "WithSkip", "WithHeaders", "WithDenied", "WithRefundIf",
		"WithOnError", "WithMissingKey", "WithObserver", "WithLeaseInContext"},
	"Limits": {"WithCost", "WithSkip", "WithHeaders", "WithDenied", "WithRefundIf",
		"WithOnError", "WithMissingKey", "WithObserver", "WithLeaseInContext"},
	"Transport": {"WithName", "WithCost", "WithSkip", "WithRefundIf", "WithOnError",
		"WithMissingKey", "WithObserver", "WithMaxServers"},
}

func configure(constructor string, opts []Option) config {
	c := config{missing: Shared, onError: FailClosed, maxServers: defaultMaxServers}
	known := optionsOf[constructor]
	for _, o := range opts {
		require(o.apply != nil, constructor, "the zero Option is not an option")
		require(slices.Contains(known, o.name), constructor,
			"does not take the option "+o.name+", only "+strings.Join(known, ", "))
		o.apply(&c)
	}
	return c
}

// WithName sets the name of the policy in the RateLimit fields, in problem
// details and in events: 1 to 64 of A-Z a-z 0-9 . _ -. The default tells the
// limit at the time of wiring, "100-per-60s", or "default" if the limiter
// cannot tell or, as an adaptive one, has none then. Policies of one service
// want different names.
func WithName(name string) Option {
	return Option{"WithName", func(c *config) {
		require(name != "", "WithName", "the name is empty")
		c.name = name
	}}
}

// WithCost sets what a request costs in units; the default is 1. Zero charges
// nothing and is always admitted.
//
// A negative cost is a mistake that a client may be able to provoke (the
// ContentLength of a body of unknown length is -1), so it must not be free:
// the request is refused with 503 whatever WithOnError says, nothing is
// charged, and the event carries algo.ErrCost. In Limits it is the cost of
// policies that have none of their own. It must not read the body.
func WithCost(cost func(*http.Request) int64) Option {
	require(cost != nil, "WithCost", "the function is nil")
	return Option{"WithCost", func(c *config) { c.cost = cost }}
}

// WithSkip lets requests for which skip is true pass unlimited, without
// fields and without an event. The default is none.
func WithSkip(skip func(*http.Request) bool) Option {
	require(skip != nil, "WithSkip", "the function is nil")
	return Option{"WithSkip", func(c *config) { c.skip = skip }}
}

// WithHeaders sets what clients are told of the limit; the default is IETF.
// Nothing is told while the limit is switched off, and of a request that a limit
// on trial ([algo.Shadow]) would have denied. As long as such a limit has room,
// its fields look like any other's: take None if clients must not act on them.
func WithHeaders(mode HeadersMode) Option {
	require(mode <= LegacyEpoch, "WithHeaders", "the mode is none of IETF, Legacy, LegacyEpoch and None")
	return Option{"WithHeaders", func(c *config) { c.headers = mode }}
}

// WithDenied replaces the answer to denied requests, also to those that are
// refused after an error. When h is called, the RateLimit fields, Retry-After
// and Cache-Control are set already; [DenialFrom] gives it the status that
// would have been sent and the decision. It has to write the status itself.
// gRPC and Connect requests get it too.
func WithDenied(h http.Handler) Option {
	require(!isNil(h), "WithDenied", "the handler is nil")
	return Option{"WithDenied", func(c *config) { c.denied = h }}
}

// WithOnError sets what happens to a request that could not be decided,
// because the limiter or the key function failed. The default is FailClosed.
// A cost that cannot be weighed, and a request whose time is over, are refused
// in any case. Failures are logged through log/slog, one in 10 s at most, with
// code httpmw.undecided.
func WithOnError(p FailPolicy) Option {
	require(p <= FailClosed, "WithOnError", "the policy is neither FailOpen nor FailClosed")
	return Option{"WithOnError", func(c *config) { c.onError = p }}
}

// WithMissingKey sets what happens to a request without the identity that the
// key function looks for ([keyfunc.ErrNoKey]). The default is Shared.
func WithMissingKey(p MissingKey) Option {
	require(!isNil(p), "WithMissingKey", "the policy is nil")
	return Option{"WithMissingKey", func(c *config) { c.missing = p }}
}

// WithObserver sets a function that is told of every decision before the handler
// runs: of an admission once for each policy, of a denial once for each that had
// no room. Requests that no limit applies to ([WithSkip], [Skip]) are no
// decisions. It is called on the request's goroutine, from many at once, and
// should be quick.
func WithObserver(observe func(Event)) Option {
	require(observe != nil, "WithObserver", "the function is nil")
	return Option{"WithObserver", func(c *config) { c.observe = observe }}
}

// FailPolicy is what happens to a request that could not be decided.
type FailPolicy uint8

const (
	// FailOpen lets it pass unlimited. A client that can make the key function
	// fail, with a malformed token for example, is not limited at all.
	FailOpen FailPolicy = iota
	// FailClosed answers 503.
	FailClosed
)

// MissingKey is what happens to requests without a key: [Shared], [Deny],
// [Skip] or the result of [FallbackTo].
type MissingKey interface {
	// keyFor returns the key to use instead. With verdict other than charge
	// the key means nothing.
	keyFor(r *http.Request) (key string, v verdict, err error)
}

// The simple policies for missing keys.
const (
	// Shared lets all requests without a key share one bucket of the limiter,
	// under the key "~missing": they are limited as one client.
	Shared missingMode = iota
	// Deny answers 429 without Retry-After.
	Deny
	// Skip lets the request pass, not limited by this policy. Whoever leaves
	// the identity out is not limited.
	Skip
)

// missingKey is the key that requests without one share. The leading '~'
// keeps it apart from what clients send; see package keyfunc.
const missingKey = "~missing"

type missingMode uint8

func (m missingMode) keyFor(*http.Request) (string, verdict, error) {
	return missingKey, [...]verdict{charge, refuse, pass}[min(m, Skip)], nil
}

// FallbackTo asks key instead. If that has none either, the request shares
// the bucket of [Shared]. The two functions should not give equal keys for
// different clients; those of package keyfunc do not, but for keyfunc.Host, whose
// keys look like any name that a client may choose. It panics if key is nil.
func FallbackTo(key keyfunc.HTTP) MissingKey {
	require(key != nil, "FallbackTo", "the key function is nil")
	return fallback(key)
}

type fallback keyfunc.HTTP

func (f fallback) keyFor(r *http.Request) (string, verdict, error) {
	key, err := f(r)
	if isNoKey(err) {
		return missingKey, charge, nil
	}
	return key, charge, err
}
