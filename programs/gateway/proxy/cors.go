package proxy

import (
	"context"
	"net/http"
	"net/http/httputil"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// exposed are the fields of limits that a page may read.
const exposed = "RateLimit, RateLimit-Policy, Retry-After, Retry-After-Ms, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

type preflightKey struct{}

// forBrowsers makes every answer readable for the pages of the allowed origins; fields of
// the upstream stay. Their preflights are on the route of the request that they ask about.
func forBrowsers(c config.CORS, next http.Handler) http.Handler {
	if len(c.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		allowed := c.Allows(origin)
		header := w.Header()
		w = &writer{ResponseWriter: w, head: func(status int) bool {
			if status >= http.StatusOK {
				allow(header, origin, allowed, c.Credentials)
			}
			return true
		}}
		if method := r.Header.Get("Access-Control-Request-Method"); allowed && r.Method == http.MethodOptions && method != "" {
			r = r.WithContext(context.WithValue(r.Context(), preflightKey{}, true))
			r.Method = method
		}
		next.ServeHTTP(w, r)
	})
}

func allow(h http.Header, origin string, allowed, credentials bool) {
	h.Add("Vary", "Origin")
	if !allowed {
		return
	}
	h.Add("Access-Control-Expose-Headers", exposed)
	if h.Get("Access-Control-Allow-Origin") == "" {
		h.Set("Access-Control-Allow-Origin", origin)
		if credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
	}
}

func isPreflight(r *http.Request) bool { return r.Context().Value(preflightKey{}) != nil }

// pastPreflights sends preflights of allowed origins to next, and others through limited.
func pastPreflights(next, limited http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPreflight(r) {
			next.ServeHTTP(w, r)
			return
		}
		limited.ServeHTTP(w, r)
	})
}

// restoreMethod gives a preflight its method back.
func restoreMethod(pr *httputil.ProxyRequest) {
	if isPreflight(pr.In) {
		pr.Out.Method = http.MethodOptions
	}
}
