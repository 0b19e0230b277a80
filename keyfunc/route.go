package keyfunc

import (
	"net/http"
	"reflect"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/internal/warning"
)

// unmatchedKey is the key of all requests that no route matches. A key for each
// path would not limit clients, because they choose the path.
var unmatchedKey = keytext.Unmatched.Key()

// Route keys requests by the pattern of their route, as it was registered:
// "GET /items/{id}". A pattern that begins with a host has the key
// "~route:example.com/items", because a user may have the name of the pattern. Route
// reads http.Request.Pattern, which the router sets before it calls the handler: put
// the limiter around a handler inside the router, or use [Pattern] in front of it.
// Requests without a pattern share the key "~unmatched"; if these are most, Route logs
// that once, with the code keyfunc.route_unmatched. The path is never part of a key.
func Route() HTTP {
	unmatched := new(warning.Share)
	return func(r *http.Request) (string, error) {
		if r.Pattern != "" {
			unmatched.Usual(1)
		} else if unmatched.Odd(warning.Many) {
			warnUnmatched.Log()
		}
		return routeKey(r.Pattern), nil
	}
}

var warnUnmatched = &warning.Once{Line: warning.Line{
	Code:    "keyfunc.route_unmatched",
	Message: "keyfunc: Route finds no route for most requests, so they share one limit",
	Do:      "put the limit inside the router, around its handlers, or use keyfunc.Pattern",
}}

// Pattern is [Route] for a limiter in front of the router: it looks up the
// pattern that mux will match. Not found, method not allowed and redirects
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
	return keytext.Route(pattern)
}
