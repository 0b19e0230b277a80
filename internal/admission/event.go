package admission

import (
	"github.com/sluice-go/sluice/algo/telemetry"
)

// Event is one decision as an observer sees it.
type Event = telemetry.Event

// Result is the class of a decision.
type Result = telemetry.Result

// The results. Skipped is not an event: no limit applies to the call.
const (
	Allowed      = telemetry.Allowed
	Denied       = telemetry.Denied
	Canceled     = telemetry.Canceled
	FailedOpen   = telemetry.FailedOpen
	FailedClosed = telemetry.FailedClosed
	Skipped      = Result(255)
)
