package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/algo"
)

// hold is a lease that others than the serving goroutine may see.
type hold struct {
	lease algo.Lease
}

// serveHeld serves under a lease on the heap.
func (h *handler) serveHeld(w http.ResponseWriter, r *http.Request) {
	held := new(hold)
	outcome := algo.Failed
	defer func() { held.lease.Release(outcome) }()
	if !h.admit(&held.lease, w, r) {
		return
	}
	h.next.ServeHTTP(w, r)
	outcome = algo.Succeeded
}
