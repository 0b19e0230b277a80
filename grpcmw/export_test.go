package grpcmw

import "github.com/sluice-go/sluice/internal/admission"

// ResetWarnings makes the next failure be logged.
func ResetWarnings() {
	admission.ResetFailures()
	warnUnknown.Lease.Reset()
	warnUnknown.Policy.Reset()
}
