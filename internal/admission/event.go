package admission

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/keyfunc"
)

// skipped is the result of a call that no limit applies to. It is no event.
const skipped = telemetry.Result(255)

// Report calls the observer, if there is one: for each policy of a call that passes or that
// no limiter decided on, otherwise for each that had no room. method is the full method of a
// gRPC call, status the status of the answer. sent returns the fields and waits in the answer
// for each policy in turn.
func (ps *Policies[C]) Report(ctx context.Context, v *Verdict[C], method string, status int, sent func(Part[C]) telemetry.Sent) {
	if ps.Observe == nil || v.Result == skipped {
		return
	}
	e := telemetry.Event{
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
		if v.Result == telemetry.Denied && len(parts) > 1 && !p.Denied() {
			continue
		}
		e.Policy, e.Decision, e.Cost, e.KeyHash = p.Name, p.Decision, p.Request.N, keyfunc.Hash(p.Request.Key)
		ps.Observe(e)
	}
}
