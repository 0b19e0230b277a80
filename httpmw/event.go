package httpmw

import (
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/keyfunc"
)

// Event tells an observer of one decision, see [WithObserver].
type Event = telemetry.Event

// Result is what became of a request.
type Result = telemetry.Result

// The results.
const (
	Allowed      = telemetry.Allowed
	Denied       = telemetry.Denied
	Canceled     = telemetry.Canceled
	FailedOpen   = telemetry.FailedOpen
	FailedClosed = telemetry.FailedClosed
)

// start reads the clock for an observer.
func (g *guard) start() (now time.Time) {
	if g.observe != nil {
		now = time.Now()
	}
	return now
}

// stop notes for an observer when the answer was known.
func (a *asking) stop(start time.Time) {
	if a.observe != nil {
		a.stopped(start)
	}
}

func (a *asking) stopped(start time.Time) {
	a.at = time.Now()
	a.waited = a.at.Sub(start)
}

// tell calls the observer.
func (a *asking) tell(result Result, d *algo.Decision, sent telemetry.Sent, status int, err error) {
	if a.observe == nil {
		return
	}
	e := Event{
		At: a.at, Transport: telemetry.HTTP, Client: a.w == nil,
		Result: result, Policy: a.rule.name, Waited: a.waited,
		Status: status, Cost: a.n, KeyHash: keyfunc.Hash(a.key), Sent: sent, Err: err,
	}
	if a.at.IsZero() { // the limiter was not asked
		e.At = time.Now()
	}
	if d != nil {
		e.Decision = *d
	}
	a.observe(e)
}

// nothing is what is sent to nobody.
var nothing telemetry.Sent

// items reads back, for an observer, what advertise has written: the items of
// one policy after the other.
type items struct{ policies, limits, legacy, left, reset string }

func (g *guard) written(h http.Header) (w items) {
	if g.headers == IETF {
		w.policies, w.limits = last(h[policyField]), last(h[limitField])
		return w
	}
	if g.headers != None {
		w.legacy, w.left, w.reset = last(h[legacyLimit]), last(h[legacyRemaining]), last(h[legacyReset])
	}
	return w
}

func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// of returns the items of r, whose decision was d. No item has a comma within.
func (w *items) of(r *rule, d *algo.Decision) (sent telemetry.Sent) {
	if !r.inForce(d) {
		return sent
	}
	sent.Policy, sent.Limit, sent.Reset = w.legacy, w.left, w.reset
	if w.policies != "" {
		sent.Policy, w.policies, _ = strings.Cut(w.policies, ", ")
		if !unknown(d) {
			sent.Limit, w.limits, _ = strings.Cut(w.limits, ", ")
		}
	}
	return sent
}

// fields is what the fields tell of a single policy.
func (a *asking) fields(d *algo.Decision) telemetry.Sent {
	if a.at.IsZero() { // refused for lack of a key, and nothing was written
		return nothing
	}
	w := a.written(a.w.Header())
	return w.of(a.rule, d)
}

// tellRefused tells of a refusal. What its answer must not work out a second
// time, it leaves in f.
func (a *asking) tellRefused(result Result, d *algo.Decision, sent telemetry.Sent, f *refusal, err error) {
	sent.RetryAfter = time.Duration(f.retry) * time.Second
	if a.denied == nil && protocolOf(a.r).kind == grpc {
		if f.pushback == 0 {
			f.pushback = pushback(a.r, f.retry, time.Now())
		}
		sent.Pushback = int32(f.pushback)
	}
	a.tell(result, d, sent, f.status, err)
}
