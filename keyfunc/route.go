package keyfunc

import (
	"net/http"
	"reflect"
)

// unmatchedKey is shared by all requests that no route matches. Their paths
// are made up by clients, and one key for each would be no limit at all.
const unmatchedKey = "~unmatched"

// Route is the pattern of the route that matched, as it was registered:
// "GET /items/{id}". It is http.Request.Pattern, which the router sets before
// it calls the handler, so the limiter must be around a handler inside the
// router; in front of one, use [Pattern]. Requests without a pattern share the
// key "~unmatched". The path of the request is never part of a key.
func Route() HTTP {
	return func(r *http.Request) (string, error) { return routeKey(r.Pattern), nil }
}

// Pattern is [Route] for a limiter in front of the router: it asks mux which
// pattern the request will match. Not found, method not allowed and redirects
// to no registered pattern share the key "~unmatched". It panics if mux is nil.
func Pattern(mux *http.ServeMux) HTTP {
	require(mux != nil, "Pattern", "the mux is nil")
	return func(r *http.Request) (string, error) {
		h, pattern := mux.Handler(r)
		// For CONNECT, the pattern of a redirect is the path of the request.
		if r.Method == http.MethodConnect && reflect.TypeOf(h) == redirectType {
			pattern = ""
		}
		return routeKey(pattern), nil
	}
}

var redirectType = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))

func routeKey(pattern string) string {
	if pattern == "" {
		return unmatchedKey
	}
	return pattern
}
