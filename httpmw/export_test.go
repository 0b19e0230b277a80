package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/admission"
)

// ResetWarnings makes every warning be logged again.
func ResetWarnings() {
	warnTwice.Reset()
	warnRebuilt.Reset()
	warnTimeout.Reset()
	warnUnknown.Lease.Reset()
	warnUnknown.Policy.Reset()
	built.first.Store(0)
	built.second.Store(0)
	admission.ResetFailures()
}

// Watch wraps w as for a limiter that holds slots.
func Watch(w http.ResponseWriter) http.ResponseWriter {
	watched, _ := watch(w, new(trackedLease))
	return watched
}

const ManyBuilt = manyBuilt
