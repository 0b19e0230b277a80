package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// handle serves a route, and the other spellings of its path if the file says so. All
// spellings have the pattern and the parts of the path of one, so they have one key.
func (rt *router) handle(r *config.Route, h http.Handler) {
	rt.Handle(r.Pattern, h)
	as := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Pattern = r.Pattern
		h.ServeHTTP(w, req)
	})
	if r.AnySpelling {
		rt.spellings.Handle(config.SpellingPattern(r.Pattern), as)
	}
	if short, ok := strings.CutSuffix(r.Pattern, "/"); ok && strings.Contains(short, "/") {
		rt.short = append(rt.short, func() { rt.Handle(short, as) })
	}
}

// handleShort serves /api on the route /api/, which http.ServeMux would redirect, unless another
// route has it.
func (rt *router) handleShort() {
	for _, handle := range rt.short {
		func() {
			defer func() { _ = recover() }() // Handle panics at a pattern that another one conflicts with
			handle()
		}()
	}
}

// respelled is the request under the one spelling of its path, nil if no route for any
// spelling matches that, or if a more specific route matches the path as it is.
func (rt *router) respelled(r *http.Request, clean string) *http.Request {
	if !strings.HasPrefix(clean, "/") {
		return nil
	}
	to := &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: config.Spelling(clean), RawQuery: r.URL.RawQuery}
	pattern := patternOf(&rt.spellings, r, to)
	if pattern == "" || specificity(pattern) < specificity(patternOf(&rt.ServeMux, r, withPath(r.URL, clean))) {
		return nil
	}
	as := r.WithContext(context.WithValue(r.Context(), sentURL{}, r.URL))
	as.URL = to
	return as
}

func patternOf(mux *http.ServeMux, r *http.Request, u *url.URL) string {
	_, pattern := mux.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: u})
	return pattern
}
