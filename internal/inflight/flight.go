// Package inflight follows an HTTP request from its admission to its outcome: its lease, the
// response writer and body that the handler gets, a hijacked connection, and how long the
// request waited for its client. It knows no policy.
package inflight

import (
	"context"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algo"
)

// Flight is a request in flight.
type Flight struct {
	lease    *lease
	r        *http.Request
	inner    *http.Request // the handler's copy of r, if it has one
	w        *writer       // nil: nothing of the request is watched
	refundIf func(status int) bool
	returned bool
}

// Begin begins a flight before the request is admitted; End ends it. End refunds the charge
// if refundIf is true for the status; a nil refundIf never is.
func Begin(r *http.Request, refundIf func(status int) bool) Flight {
	f := Flight{lease: new(lease), r: r, refundIf: refundIf}
	f.lease.users.Store(1)
	return f
}

// Lease returns the lease of the request, to be acquired.
func (f *Flight) Lease() *algo.Lease { return &f.lease.Lease }

// Watch returns the writer for the handler of an admitted request, which records the status and
// the waits for the client.
func (f *Flight) Watch(w http.ResponseWriter) http.ResponseWriter {
	if f.r.Method == http.MethodConnect && f.r.ProtoMajor > 2 {
		f.lease.streams() // it lasts as long as the client likes
		return w          // which is upgraded through types of its own package
	}
	outer, watched := watch(w, f.r, f.lease)
	f.w = watched
	return outer
}

// Request returns the request for the handler, with ctx and, if the writer is watched, a watched
// body.
func (f *Flight) Request(ctx context.Context) *http.Request {
	watched := f.w != nil && f.r.Body != nil && f.r.Body != http.NoBody && f.r.ContentLength != 0
	if !watched && ctx == f.r.Context() {
		return f.r
	}
	f.inner = Copy(ctx, f.r)
	if watched {
		body := &f.w.body
		body.ReadCloser, body.lease, body.http1 = f.r.Body, f.lease, f.r.ProtoMajor == 1
		f.inner.Body = body // of the copy: net/http looks at the type of the body to see how much of it is left
	}
	return f.inner
}

// Returned records that the handler returned normally.
func (f *Flight) Returned() { f.returned = true }

// End ends the flight. It finds the outcome under a defer of its own, because refundIf may
// panic.
func (f *Flight) End() {
	if f.inner != nil {
		GiveBack(f.r, f.inner)
	}
	outcome := algo.Failed
	defer func() { f.lease.drop(outcome) }()
	if f.lease.Allowed {
		outcome = f.outcome()
	}
}

// Refused marks the request as refused before its work in the writers of outer limits, as far
// as the writers between them have Unwrap.
func Refused(w http.ResponseWriter) {
	for {
		if outer, ok := w.(interface{ refused() }); ok {
			outer.refused()
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}

// Copy returns r with another context. The copy gets the trailers that net/http adds to r,
// including those that the head of the request does not announce.
func Copy(ctx context.Context, r *http.Request) *http.Request {
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{}
	}
	return r.WithContext(ctx)
}

// GiveBack copies the results of the handler from its copy of the request to r:
// the server removes the files of the form, and middlewares around this one log
// the pattern and the parts of the path that it names.
func GiveBack(r, copied *http.Request) {
	r.MultipartForm = copied.MultipartForm
	if r.Pattern == copied.Pattern {
		return
	}
	r.Pattern = copied.Pattern
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && part != "{$}" {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			r.SetPathValue(name, copied.PathValue(name))
		}
	}
}
