package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/inflight"
	"github.com/sluice-go/sluice/internal/warning"
)

// ResetWarnings makes every warning be logged again.
func ResetWarnings() {
	warnTwice.Reset()
	warnRebuilt.Reset()
	warnTimeout.Reset()
	built = warning.Share{}
	admission.ResetFailures()
	warning.UnknownPolicy.Reset()
	warning.NoLease.Reset()
	warning.Unkept.Store(false)
	warning.Trial.Reset()
}

// Watch wraps w as for a limiter that holds slots.
func Watch(w http.ResponseWriter) http.ResponseWriter {
	f := inflight.Begin(new(http.Request), nil)
	return f.Watch(w)
}

const ManyBuilt = manyBuilt
