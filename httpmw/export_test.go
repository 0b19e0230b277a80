package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/inflight"
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
	f := inflight.Begin(new(http.Request), nil)
	return f.Watch(w)
}

const ManyBuilt = manyBuilt
