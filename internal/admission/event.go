package admission

import (
	"context"
	"time"

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

// Report calls the observer, if there is one: for each policy of a call that passes or that
// no limiter decided on, else for each that had no room. method is the full method of a call
// of gRPC, status the status of the answer, sent returns the fields and waits in it, and is called for each policy in turn.
func (ps *Policies[C]) Report(ctx context.Context, v *Verdict[C], method string, status int, sent func(Part[C]) telemetry.Sent) {
	if ps.Observe == nil || v.Result == Skipped {
		return
	}
	e := Event{
		Context: ctx, At: time.Now(),
		Transport: ps.Transport, Result: v.Result, Method: method,
		Status: status, Err: v.Err,
	}
	if !v.started.IsZero() {
		e.Waited = e.At.Sub(v.started)
	}
	parts := v.Parts()
	for i := range parts {
		p := &parts[i]
		if sent != nil {
			e.Sent = sent(*p)
		}
		if v.Result == Denied && len(parts) > 1 && !p.Denied() {
			continue
		}
		e.Policy, e.Decision, e.Cost, e.KeyHash = p.Name, p.Decision, p.Request.N, keyfunc.Hash(p.Request.Key)
		ps.Observe(e)
	}
}
