package httpmw

import (
	"net/http"
	"reflect"
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

var (
	warnTwice = &warning.Once{Line: warning.Line{
		Code:    "httpmw.policy_twice",
		Message: "httpmw: a request passed two limits of the same name and size; one limiter that is wired twice charges every request twice",
		Do:      "wire it once; give two limiters two names",
	}}
	warnTimeout = &warning.Once{Line: warning.Line{
		Code:    "httpmw.timeout_inside",
		Message: "httpmw: http.TimeoutHandler inside a concurrency limit answers while its handler continues without a slot",
		Do:      "put the limit inside the TimeoutHandler",
	}}
	warnRebuilt = &warning.Once{Line: warning.Line{
		Code:    "httpmw.built_per_request",
		Message: "httpmw: nearly every middleware has served one request only",
		Do:      "build the middleware once, not for each request",
	}}
)

// warnIfTwice looks for the policy among those that the request has passed.
func warnIfTwice(passed []string, policy string) {
	if slices.Contains(passed, policy) {
		warnTwice.Log("policy", policy)
	}
}

// timeoutHandler is the type of http.TimeoutHandler.
var timeoutHandler = reflect.TypeOf(http.TimeoutHandler(nil, 0, ""))

// warnIfTimeout finds, at wiring, a handler that returns before its work ends.
func (m *middleware) warnIfTimeout(next http.Handler) {
	if m.fixed != nil && m.fixed.watches && reflect.TypeOf(next) == timeoutHandler {
		warnTimeout.Log("policy", m.fixed.All[0].Name)
	}
}

// warnIfNested finds, at wiring, a limiter that is wired twice, also where no
// fields are sent.
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
