package grpcmw

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/keyfunc"
)

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

// report calls the observer.
func (g *gate) report(a *ask, d *algo.Decision, r Result, code codes.Code, sent telemetry.Sent, err error) {
	if g.observer == nil {
		return
	}
	e := Event{
		At: time.Now(), Transport: telemetry.GRPC, Client: g.client,
		Result: r, Policy: g.name, Method: a.method, Decision: *d,
		Status: int(code), Cost: a.n, KeyHash: keyfunc.Hash(a.key), Sent: sent, Err: err,
	}
	if !a.start.IsZero() {
		e.Waited = e.At.Sub(a.start)
	}
	g.observer(e)
}

// trailed is what WithRateTrailers tells of the admission d.
func (g *gate) trailed(a *ask, d *algo.Decision) (sent telemetry.Sent) {
	if !g.rateTrailers || !a.opening {
		return sent
	}
	md := g.rateTrailer(d)
	if items := md["ratelimit-policy"]; len(items) > 0 {
		sent.Policy = items[0]
	}
	if items := md["ratelimit"]; len(items) > 0 {
		sent.Limit = items[0]
	}
	return sent
}
