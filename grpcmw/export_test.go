package grpcmw

import (
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/warning"
)

// ResetWarnings makes the next failure be logged.
func ResetWarnings() {
	admission.ResetFailures()
	warning.UnknownPolicy.Reset()
	warning.NoLease.Reset()
	warning.Unkept.Store(false)
	warning.Trial.Reset()
}
