package httpmw

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// handler is a guard before one next handler.
type handler struct {
	*guard
	next   http.Handler
	served atomic.Uint32 // requests, up to 2; see countServed
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.countServed()
	switch {
	case h.skip != nil && h.skip(r):
		h.next.ServeHTTP(w, r)
	case h.watches || h.exposes:
		h.serveHeld(w, r)
	default:
		h.servePlain(w, r)
	}
}

// servePlain serves under a lease that nobody else sees, and that stays on the
// stack. The deferred release runs when the handler panics, with
// http.ErrAbortHandler too, and when it exits its goroutine; it is set before
// the limiter is asked, so that nothing can come between.
func (h *handler) servePlain(w http.ResponseWriter, r *http.Request) {
	var lease algo.Lease
	outcome := algo.Failed
	defer func() { lease.Release(outcome) }()
	if !h.admit(&lease, w, r) {
		return
	}
	h.next.ServeHTTP(w, r)
	outcome = algo.Succeeded
}

// admit decides on r. If it returns false, the request has been answered. If
// it returns true and the lease is zero, the request passes unlimited.
func (g *guard) admit(lease *algo.Lease, w http.ResponseWriter, r *http.Request) bool {
	a := asking{guard: g, rule: g.rules[0], w: w, r: r}
	key, n, v, err := a.rule.weigh(r, g.missing)
	a.key, a.n = key, n
	switch {
	case err != nil:
		return a.undecided(err)
	case v == pass:
		return true
	case v == refuse:
		a.denied(&algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever})
		return false
	}
	*lease, err = a.rule.limiter.Acquire(r.Context(), key, n)
	if err != nil {
		return a.undecided(err)
	}
	if lease.Allowed && lease.Delay > 0 {
		if err := sleepOut(r.Context(), lease); err != nil && a.gone(err) {
			return false
		}
	}
	g.advertise(w.Header(), a.rule, &lease.Decision)
	if !lease.Allowed {
		a.denied(&lease.Decision)
		return false
	}
	if g.observe != nil {
		a.tell(Allowed, 0, &lease.Decision, nil)
	}
	return true
}

// sleepOut waits for the Delay of an admission. If the context ends before, it
// gives the charge back and turns the admission into a denial; the error says
// why.
func sleepOut(ctx context.Context, lease *algo.Lease) error {
	delay := lease.Delay
	err := algo.Sleep(ctx, delay)
	if err == nil {
		lease.NextAfter = max(lease.NextAfter-delay, 0)
		lease.ResetAfter = max(lease.ResetAfter-delay, 0)
		return nil
	}
	lease.Release(algo.Canceled)
	lease.Allowed, lease.Reason, lease.RetryAfter = false, algo.Quota, delay
	lease.NextAfter = min(lease.NextAfter, delay) // the charge no longer stands before it
	return err
}

// asking is one request before one rule.
type asking struct {
	*guard
	rule *rule
	key  string
	n    int64
	w    http.ResponseWriter
	r    *http.Request
}

// tell calls the observer.
func (a *asking) tell(result Result, status int, d *algo.Decision, err error) {
	if a.observe == nil {
		return
	}
	e := Event{Policy: a.rule.name, Result: result, Status: status, Cost: a.n, Err: err}
	if d != nil {
		e.Decision = *d
	}
	if a.key != "" {
		e.KeyHash = hashKey(a.key)
	}
	a.observe(e)
}

// gone deals with a client that went away, which shows as a canceled context;
// a deadline that has passed is not one. It gets no answer: the status is for
// whoever canceled the context while the client is still there, because
// net/http would send 200.
func (a *asking) gone(err error) bool {
	if !errors.Is(a.r.Context().Err(), context.Canceled) {
		return false
	}
	a.tell(Canceled, 0, nil, err)
	a.w.WriteHeader(http.StatusServiceUnavailable)
	return true
}

// denied answers a denial. The RateLimit fields are set already.
func (a *asking) denied(d *algo.Decision) {
	if a.r.Context().Err() != nil && a.gone(a.r.Context().Err()) {
		return
	}
	status := a.rule.status(d, a.key)
	a.tell(Denied, status, d, nil)
	problem := a.rule.problem[0]
	if status != http.StatusTooManyRequests {
		problem = a.rule.problem[1]
	}
	t := until(d, a.rule.describe(d.Limit))
	a.refuse(a.w, a.r, refusal{status, a.rule.name, retrySeconds(d, t), problem}, d)
}

// undecided deals with an error of the limiter or of the key function, and
// reports whether the request goes on. FailOpen is not for costs that cannot
// be weighed, which clients can provoke, nor for requests whose time is over.
func (a *asking) undecided(err error) bool {
	expired := a.r.Context().Err() != nil
	if expired && a.gone(err) {
		return false
	}
	logFailure(a.rule.name, err)
	refused := expired || errors.Is(err, algo.ErrCost) || errors.Is(err, algo.ErrWait)
	if a.onError == FailOpen && !refused {
		a.tell(FailedOpen, 0, nil, err)
		return true
	}
	const status = http.StatusServiceUnavailable
	a.tell(FailedClosed, status, nil, err)
	a.refuse(a.w, a.r, refusal{status, "", 1, failedBody}, &algo.Decision{})
	return false
}
