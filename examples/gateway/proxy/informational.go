package proxy

import (
	"maps"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// keepHeader keeps the fields that the header has before next, such as the RateLimit
// fields, over informational responses of the upstream: ReverseProxy clears the header
// after each. A client of HTTP/1.0 gets no such response (RFC 9110 section 15.2). Rate
// fields of the upstream are treated as mode says.
func keepHeader(mode string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before := maps.Clone(w.Header())
		final := func(write httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) {
				if status < http.StatusOK && status != http.StatusSwitchingProtocols {
					if r.ProtoAtLeast(1, 1) {
						write(status)
					}
					return
				}
				h := w.Header()
				settleFields(h, before, mode)
				for name, lines := range before {
					if _, kept := h[name]; !kept && !isRateField(name) {
						h[name] = lines
					}
				}
				write(status)
			}
		}
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{WriteHeader: final}), r)
	})
}
