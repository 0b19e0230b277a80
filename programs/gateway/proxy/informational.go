package proxy

import (
	"maps"
	"net/http"
)

// keepHeader keeps the fields that the header has before next, such as the RateLimit
// fields, over informational responses of the upstream: ReverseProxy clears the header
// after each. A client of HTTP/1.0 gets no such response (RFC 9110 section 15.2), and no client
// a 100 of the upstream: the server sends its own when the body is read. Rate fields of the
// upstream are treated as mode says.
func keepHeader(mode string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before := maps.Clone(w.Header())
		next.ServeHTTP(&writer{ResponseWriter: w, head: func(status int) bool {
			if status < http.StatusOK && status != http.StatusSwitchingProtocols {
				return status != http.StatusContinue && r.ProtoAtLeast(1, 1)
			}
			h := w.Header()
			settleFields(h, before, mode)
			for name, lines := range before {
				if _, kept := h[name]; !kept && !isRateField(name) {
					h[name] = lines
				}
			}
			return true
		}}, r)
	})
}
