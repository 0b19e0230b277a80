package admission

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/keyfunc"
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

// begin notes when the limiter is called. A caller that waited for something
// else before may have set the start itself.
func (a *Attempt) begin() {
	if a.Start.IsZero() {
		a.Start = time.Now()
	}
}

// end notes when the answer was known.
func (a *Attempt) end() { a.at = time.Now() }

// report is Report with an observer.
func (p *Policy[C]) report(a *Attempt, r Result, d *algo.Decision, method string, status int, sent telemetry.Sent) {
	e := Event{
		Context: a.Context, At: a.at, Transport: p.Transport, Result: r, Policy: p.Name, Method: method,
		Decision: *d, Status: status, Cost: a.Cost, KeyHash: keyfunc.Hash(a.Key), Sent: sent, Err: a.Err,
	}
	if e.At.IsZero() { // the limiter was not asked
		e.At = time.Now()
	} else {
		e.Waited = e.At.Sub(a.Start)
	}
	p.Observe(e)
}
