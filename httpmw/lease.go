package httpmw

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// LeaseFrom returns the lease of the request, so that the handler can see what
// remains and correct the cost once that is known:
//
//	httpmw.LeaseFrom(r.Context()).Settle(rows)
//
// Of several middlewares it is the lease of the innermost with
// [WithLeaseInContext]. Elsewhere, and for requests that pass unlimited, it is
// a zero Lease, never nil; settling it does nothing. Use it until the handler
// returns, and from one goroutine at a time.
func LeaseFrom(ctx context.Context) *algo.Lease { return admission.LeaseFrom(ctx) }

// trackedLease is a lease that outlives the handler if the connection is
// hijacked. It is released once the handler has ended and the connection is
// closed, by the later of the two, so that neither can release it while the
// other still uses it.
type trackedLease struct {
	algo.Lease
	users    atomic.Int32 // the handler, and the connection if it is hijacked
	hijacked atomic.Bool
}

// drop ends one use of the lease.
func (l *trackedLease) drop(o algo.Outcome) {
	if l.users.Add(-1) == 0 {
		l.Release(o)
	}
}

// serveTracked serves under a lease on the heap.
func (h *handler) serveTracked(w http.ResponseWriter, r *http.Request) {
	lease := new(trackedLease)
	lease.users.Store(1)
	var watched *writer
	returned := false
	defer func() { h.endTracked(lease, watched, r, returned) }()
	if !h.admit(&lease.Lease, w, r) {
		return
	}
	if h.LeaseInContext {
		r = r.WithContext(admission.WithLease(r.Context(), &lease.Lease))
	}
	if h.watches && lease.Allowed {
		w, watched = watch(w, lease)
	}
	h.next.ServeHTTP(w, r)
	returned = true
}

// endTracked ends the handler's use of the lease. The outcome is found under a
// defer of its own, because refundIf may panic.
func (h *handler) endTracked(lease *trackedLease, w *writer, r *http.Request, returned bool) {
	outcome := algo.Failed
	defer func() { lease.drop(outcome) }()
	if !lease.Allowed {
		return
	}
	status := statusOf(w, returned)
	switch {
	case lease.hijacked.Load():
		outcome = algo.Ignored
	case h.refundIf != nil && h.refundIf(status):
		outcome = algo.Canceled
	case !returned || status >= http.StatusInternalServerError:
	case status >= http.StatusBadRequest, streams(w, r), errors.Is(r.Context().Err(), context.Canceled):
		outcome = algo.Ignored
	default:
		outcome = algo.Succeeded
	}
}

// streams reports whether the client chooses how long the response lasts:
// server-sent events, and tunnels such as websockets over HTTP/2.
func streams(w *writer, r *http.Request) bool {
	return r.Method == http.MethodConnect ||
		w != nil && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
}

// statusOf is the status that the client sees, or would have seen: 500 if the
// handler did not come to an end before it wrote one.
func statusOf(w *writer, returned bool) int {
	switch {
	case w != nil && w.status != 0:
		return w.status
	case !returned:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
