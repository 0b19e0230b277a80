package keyfunc

import (
	"net/http"
	"reflect"

	"github.com/sluice-go/sluice/internal/keytext"
)

// unmatchedKey is the key of all requests that no route matches. Clients choose
// their paths, so one key for each path would not limit them.
var unmatchedKey = keytext.Unmatched.Key()

// Route is the pattern of the route that matched, as it was registered:
// "GET /items/{id}". A pattern that begins with a host is written
// "~route:example.com/items", because a user may have that name. It is http.Request.Pattern, which the router sets before
// it calls the handler, so the limiter must be around a handler inside the
// router; in front of the router, use [Pattern]. Requests without a pattern share the
// key "~unmatched". The path of the request is never part of a key.
func Route() HTTP {
	return func(r *http.Request) (string, error) { return routeKey(r.Pattern), nil }
}

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
