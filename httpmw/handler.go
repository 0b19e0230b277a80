package httpmw

import (
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// handler is a guard before one next handler.
type handler struct {
	*guard
	next   http.Handler
	served atomic.Uint32 // requests, up to 2; see countServed
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.countServed()
	switch {
	case h.skip != nil && h.skip(r):
		h.next.ServeHTTP(w, r)
	case h.watches || h.exposes:
		h.serveHeld(w, r)
	default:
		h.servePlain(w, r)
	}
}

// servePlain serves under a lease that nobody else sees, and that stays on the
// stack. The deferred release runs when the handler panics, with
// http.ErrAbortHandler too, and when it exits its goroutine; it is set before
// the limiter is asked, so that nothing can come between.
func (h *handler) servePlain(w http.ResponseWriter, r *http.Request) {
	var lease algo.Lease
	outcome := algo.Failed
	defer func() { lease.Release(outcome) }()
	if !h.admit(&lease, w, r) {
		return
	}
	h.next.ServeHTTP(w, r)
	outcome = algo.Succeeded
}
