package grpcmw

import "github.com/sluice-go/sluice/algo/telemetry"

// Event tells an observer of one decision, see [WithObserver].
type Event = telemetry.Event

// Result is what became of a call.
type Result = telemetry.Result

// The results.
const (
	Allowed      = telemetry.Allowed
	Denied       = telemetry.Denied
	Canceled     = telemetry.Canceled
	FailedOpen   = telemetry.FailedOpen
	FailedClosed = telemetry.FailedClosed
)
