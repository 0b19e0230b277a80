package httpmw

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

var (
	warnTwice = &warning.Once{
		Code:    "httpmw.policy_twice",
		Message: "httpmw: a request passed two limits of the same name and size: a limiter that is wired twice charges every request twice, so wire it once; give two limiters two names",
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

// warnIfNested finds at wiring what warnIfTwice finds on a request, also where
// no fields are sent.
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

// built counts the middlewares that have served a request, and those that have
// served a second one.
var built struct{ first, second atomic.Int64 }

// manyBuilt is how many middlewares must have served before the warning: more
// than a service has routes.
const manyBuilt = 1000

// countServed finds middlewares that are built for each request: their limiters
// may be as short-lived.
func (h *handler) countServed() {
	switch h.served.Add(1) {
	case 1:
		if n := built.first.Add(1); n >= manyBuilt && built.second.Load() < n/16 {
			warnRebuilt.Log("middlewares=" + strconv.FormatInt(n, 10))
		}
	case 2:
		built.second.Add(1)
	}
}

// sameLimiter compares pointers; other limiters may not be comparable.
func sameLimiter(a, b algo.Limiter) bool {
	return reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
