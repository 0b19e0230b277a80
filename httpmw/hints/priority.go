package hints

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/class"
)

const priorityField = "Priority"

// Priority makes a middleware that reads the class of a request from its Priority field
// (RFC 9218), if trusted returns true. Mount it around httpmw.Limit with an adaptive limiter
// that has priorities:
//
//	handler = hints.Priority(fromGateway)(httpmw.Limit(l, keyfunc.Global())(handler))
//
// The urgency 0 is adaptive.Critical, 1 and 2 are High, 3 is Normal, 4 and 5 are Low, 6
// and 7 are Sheddable. A request without a valid urgency, or from another caller, keeps
// the class of its context. The handler's context has the class (adaptive.ClassFrom), and
// [PriorityTransport] forwards it.
//
// Only requests with the field run trusted. Do not trust clients: all would send 0.
// Priority panics if trusted is nil.
func Priority(trusted func(*http.Request) bool) func(http.Handler) http.Handler {
	if trusted == nil {
		panic("hints: Priority: the function is nil")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if lines := r.Header[priorityField]; len(lines) > 0 && trusted(r) {
				if c, ok := class.ParseField(lines); ok {
					serve(class.With(r.Context(), c), next, w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// PriorityTransport sends the class of a request's context (from adaptive.WithClass, or
// from the request that is being served) to the server, in the Priority field. Requests
// with that field, or without a class, are sent unchanged. base nil means
// http.DefaultTransport.
func PriorityTransport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &priorityTransport{base}
}

type priorityTransport struct{ base http.RoundTripper }

// CloseIdleConnections forwards http.Client.CloseIdleConnections.
func (t *priorityTransport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. It does not change r.
func (t *priorityTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := class.Lookup(r.Context())
	if _, stated := r.Header[priorityField]; !ok || stated {
		return t.base.RoundTrip(r)
	}
	sent := new(http.Request)
	*sent = *r
	sent.Header = r.Header.Clone()
	if sent.Header == nil {
		sent.Header = make(http.Header)
	}
	sent.Header[priorityField] = []string{c.Field()}
	return t.base.RoundTrip(sent)
}
