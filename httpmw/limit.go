package httpmw

import (
	"net/http"
	"reflect"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Limit makes a middleware that acquires from l before each request, under the
// key that key returns. It passes admitted requests to the handler with the
// RateLimit fields set, and answers denied ones with 429 or 503.
//
//	handler = httpmw.Limit(perClient, keyfunc.ClientIP())(handler)
//
// Limit sleeps the Delay of an admission before the handler runs. If the
// request's context ends sooner, it denies the request at once and refunds the
// charge. net/http notices that a client of HTTP/1.1 has hung up only after the body
// has been read: a request with a body is delayed in full, and its handler then reads
// an unexpected EOF.
//
// Limit releases the lease when the handler returns, panics or exits its
// goroutine. A connection that the handler hijacks keeps its slot until it is
// closed. http.TimeoutHandler returns while its handler continues: put a limit of
// concurrent requests inside it, not around it. h2c.NewHandler of golang.org/x/net takes
// over a connection with its first request: put every limit inside it, or later requests
// pass unlimited. The limiter gets the outcome
//
//   - Canceled if an inner limit has refused the request, which did no work, and the
//     writers between the two have Unwrap. (A limit over time without [WithRefundIf]
//     keeps its charge instead, because the request has arrived.);
//   - Failed for panics, statuses from 400 on, gRPC codes other than OK, and a client
//     that left, or whose own time limit passed, before there was a status;
//   - Succeeded otherwise;
//   - with the flag Untimed if the duration does not reflect the service: for requests
//     whose client has gone (a canceled context, a body that ends early, a response that
//     cannot be written) or whose own time limit has passed (Grpc-Timeout,
//     Connect-Timeout-Ms), for 4xx, 501 and the gRPC codes that concern the request,
//     for CONNECT, hijacked connections and streams, and for requests that spend most of
//     their time, and at least 100 ms, on a body that the client sends slowly, or on a
//     response that it reads slowly. A stream has the content type of one (server-sent
//     events, JSON lines and sequences, multipart replacement, Connect, audio, video),
//     or spends most of its time, and at least a second, after its first Flush.
//
// Limit reads gRPC codes from fields and trailers, not from the body, where gRPC-Web and
// streams of Connect have them: these count as succeeded.
//
// Limit observes the status only if the limiter may hold a slot, as all limiters may
// except those that count over time. The handler then gets a wrapped response
// writer. It has Flusher and Hijacker exactly if the writer beneath has them,
// ReaderFrom, Pusher and CloseNotifier if that is a writer of net/http, and Unwrap for
// http.ResponseController. Over HTTP/1.1 a body that is too long for
// http.MaxBytesReader ends the connection at once if the status is 413; with other statuses
// net/http reads the rest of the body first, up to 256 KiB.
//
// Nested middlewares decide one by one: a request that an inner one denies stays
// charged to the outer ones. [Limits] charges all or none.
//
// Limit takes all options. It panics if l, key or a function in an option is nil,
// because a misconfigured service must not start.
//
// Do not use it for a limit that one request charges several times, such as
// one per message of a stream; acquire from the limiter in the handler instead.
func Limit(l algo.Limiter, key keyfunc.HTTP, opts ...Option) func(http.Handler) http.Handler {
	m := &middleware{Config: configure(adapter, "Limit", forLimit, opts)}
	m.fixed = m.newPolicies(admission.NewPolicies(adapter, &m.Settings, l, key, "Limit"))
	return m.wrap
}

// Limits is [Limit] for several policies in one decision: it charges a request to
// all of them or to none, see [algo.AcquireAll]. The RateLimit fields have an
// item for each policy, in the order of ps; the problem details of a denial
// name the policies that had no room, and Retry-After suffices for all of them.
//
//	handler = httpmw.Limits([]httpmw.Policy{
//		{Name: "burst", Limiter: perSecond, Key: keyfunc.ClientIP()},
//		{Name: "daily", Limiter: perDay, Key: keyfunc.ClientIP()},
//	})(handler)
//
// Limits leaves out a policy whose key is missing under [Skip], or whose key
// function fails under [WithFailOpen]; the others still hold. If a limiter fails,
// nothing is decided, and under WithFailOpen the request passes all policies:
// give a limit that must hold even then a middleware of its own. Put the policy
// that denies most often first, and one that may wait last.
//
// Limits panics as Limit does, if ps is empty, and if two policies have the
// same name. It takes the options of Limit except WithName.
func Limits(ps []Policy, opts ...Option) func(http.Handler) http.Handler {
	m := &middleware{Config: configure(adapter, "Limits", forLimits, opts)}
	var err error
	if m.fixed, err = m.makePolicies("", ps); err != nil {
		adapter.Misuse("Limits", err.Error())
	}
	return m.wrap
}

// makePolicies makes the policies of one decision from ps; see admission.MakePolicies.
func (m *middleware) makePolicies(standard string, ps []Policy) (*policies, error) {
	limits := make([]admission.Limit[*http.Request], len(ps))
	for i, p := range ps {
		limits[i] = admission.Limit[*http.Request]{Name: p.Name, Limiter: p.Limiter, Key: p.Key, Cost: p.Cost}
	}
	decide, err := admission.MakePolicies(adapter, &m.Settings, limits, standard)
	if err != nil {
		return nil, err
	}
	return m.newPolicies(decide), nil
}

// Policy is one of several limits on the same requests; see [Limits] and
// [NewPlans].
type Policy struct {
	// Name is the name in the RateLimit fields: letters, digits, dots, underscores
	// and hyphens. The default describes the limit.
	Name string
	// Limiter decides. Required.
	Limiter algo.Limiter
	// Key returns the key of a request. Required.
	Key keyfunc.HTTP
	// Cost returns the cost of a request, as for [WithCost]; nil: the function of
	// WithCost, otherwise 1.
	Cost func(*http.Request) int64
}

// wrap returns the middleware around next.
func (m *middleware) wrap(next http.Handler) http.Handler {
	adapter.Require(!admission.IsNil(next), "middleware", "the next handler is nil")
	m.warnIfNested(next)
	m.warnIfTimeout(next)
	return &handler{middleware: m, next: next}
}

// timeoutHandler is the type of http.TimeoutHandler.
var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// warnIfTimeout warns, at wiring, of a handler that returns before its work ends.
func (m *middleware) warnIfTimeout(next http.Handler) {
	if m.fixed != nil && m.fixed.watches && reflect.TypeOf(next) == timeoutHandler {
		warnTimeout.Log("policy", m.fixed.All[0].Name)
	}
}

// warnIfNested warns, at wiring, of a limiter that is wired twice, even if it sends no
// fields.
func (m *middleware) warnIfNested(next http.Handler) {
	inner, ok := next.(*handler)
	if !ok || m.fixed == nil || inner.fixed == nil {
		return
	}
	for _, a := range m.fixed.All {
		for _, b := range inner.fixed.All {
			if sameLimiter(a.Limiter, b.Limiter) {
				warnTwice.Log("policy", a.Name)
			}
		}
	}
}

// sameLimiter compares pointers; other limiters may not be comparable.
func sameLimiter(a, b algo.Limiter) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
