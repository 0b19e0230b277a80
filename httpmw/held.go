package httpmw

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// hold is a lease that outlives the handler if the connection is hijacked. It
// is released once the handler has ended and the connection is closed, by the
// one of them that comes last, so that neither can release it under the other.
type hold struct {
	lease    algo.Lease
	users    atomic.Int32 // the handler, and the connection if it is hijacked
	hijacked atomic.Bool
}

// done ends one use of the lease.
func (h *hold) done(o algo.Outcome) {
	if h.users.Add(-1) == 0 {
		h.lease.Release(o)
	}
}

// serveHeld serves under a lease on the heap.
func (h *handler) serveHeld(w http.ResponseWriter, r *http.Request) {
	held := new(hold)
	held.users.Store(1)
	var watched *writer
	returned := false
	defer func() { h.finish(held, watched, r, returned) }()
	if !h.admit(&held.lease, w, r) {
		return
	}
	if h.exposes {
		r = r.WithContext(context.WithValue(r.Context(), leaseKey{}, &held.lease))
	}
	if h.watches && held.lease.Allowed {
		w, watched = watch(w, held)
	}
	h.next.ServeHTTP(w, r)
	returned = true
}

// finish ends the handler's use of the lease. The outcome is found under a
// defer of its own: refundIf is foreign code.
func (h *handler) finish(held *hold, w *writer, r *http.Request, returned bool) {
	outcome := algo.Failed
	defer func() { held.done(outcome) }()
	if !held.lease.Allowed {
		return
	}
	status := statusOf(w, returned)
	switch {
	case held.hijacked.Load():
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

// streams reports whether the response lasts as long as its client likes: server-sent
// events, and tunnels such as websockets over HTTP/2.
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
