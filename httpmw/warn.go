package httpmw

import (
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

var (
	warnTwice = &warning.Once{
		Code:    "httpmw.policy_twice",
		Message: "httpmw: a request passed two limits of the same name and size: a limiter that is wired twice charges every request twice, so wire it once; give two limiters two names",
	}
	warnTimeout = &warning.Once{
		Code:    "httpmw.timeout_inside",
		Message: "httpmw: http.TimeoutHandler inside a concurrency limit answers while its handler continues without a slot: put the limit inside the TimeoutHandler",
	}
	warnH2C = &warning.Once{
		Code:    "httpmw.h2c_inside",
		Message: "httpmw: a handler inside a limit took over a connection for HTTP/2 without TLS, and its requests pass unlimited: put the limit inside h2c.NewHandler, or let http.Server.Protocols serve it",
	}
	warnRebuilt = &warning.Once{
		Code:    "httpmw.built_per_request",
		Message: "httpmw: nearly every middleware has served one request only: build the middleware once, not for each request",
	}
)

// warnIfTwice looks for the policy among those that the request has passed.
func warnIfTwice(passed []string, policy string) {
	if slices.Contains(passed, policy) {
		warnTwice.Log("policy=" + policy)
	}
}

// timeoutHandler is the type of http.TimeoutHandler.
var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// warnIfTimeout finds, at wiring, a handler that returns before its work ends.
func (m *middleware) warnIfTimeout(next http.Handler) {
	if m.wrapsWriter && reflect.TypeOf(next) == timeoutHandler {
		warnTimeout.Log("policy=" + m.policies[0].Name)
	}
}

// http2Preface is the method of the request that the preface of HTTP/2 looks like.
const http2Preface = "PRI"

// warnIfH2C finds a handler that answered the preface by taking over the connection.
func warnIfH2C(w http.ResponseWriter, policy string) {
	if _, err := w.Write(nil); errors.Is(err, http.ErrHijacked) {
		warnH2C.Log("policy=" + policy)
	}
}

// warnIfNested finds, at wiring, a limiter that is wired twice, also where no
// fields are sent.
func (m *middleware) warnIfNested(next http.Handler) {
	inner, ok := next.(*handler)
	if !ok {
		return
	}
	for _, a := range m.policies {
		for _, b := range inner.policies {
			if sameLimiter(a.Limiter, b.Limiter) {
				warnTwice.Log("policy=" + a.Name)
			}
		}
	}
}

// sameLimiter compares pointers; other limiters may not be comparable.
func sameLimiter(a, b algo.Limiter) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
