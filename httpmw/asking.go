package httpmw

import (
	"context"
	"errors"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

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
	e.KeyHash = keyfunc.Hash(a.key)
	a.observe(e)
}

// denied answers a denial. The RateLimit fields are set already.
func (a *asking) denied(d *algo.Decision) {
	if gone(a.r) {
		a.tell(Canceled, 0, d, context.Canceled)
		leave(a.w)
		return
	}
	status := a.rule.status(d, a.key)
	a.tell(Denied, status, d, nil)
	t := until(d, a.rule.describe(d.Limit))
	a.refuse(a.w, a.r, refusal{status, a.rule.name, retrySeconds(d, t), a.rule.problemOf(status)}, d)
}

// undecided deals with an error of the limiter or of the key function, and
// reports whether the request goes on.
func (a *asking) undecided(err error) bool {
	result := a.judge(a.r, err)
	status := 0
	if result == FailedClosed {
		status = http.StatusServiceUnavailable
	}
	a.tell(result, status, nil, err)
	return a.survive(a.w, a.r, a.rule.name, result, err)
}

// judge says what becomes of a request that could not be decided. FailOpen is
// not for costs that cannot be weighed, which clients can provoke, nor for
// requests whose time is over.
func (g *guard) judge(r *http.Request, err error) Result {
	switch {
	case gone(r):
		return Canceled
	case g.onError == FailClosed, r.Context().Err() != nil,
		errors.Is(err, algo.ErrCost), errors.Is(err, algo.ErrWait):
		return FailedClosed
	}
	return FailedOpen
}

// survive acts upon the judgement and reports whether the request goes on.
func (g *guard) survive(w http.ResponseWriter, r *http.Request, policy string, result Result, err error) bool {
	if result == Canceled {
		leave(w)
		return false
	}
	logFailure(policy, err)
	if result == FailedOpen {
		return true
	}
	g.refuse(w, r, refusal{http.StatusServiceUnavailable, "", 1, failedBody}, &algo.Decision{})
	return false
}

// gone reports whether the client went away, which shows as a canceled context;
// a deadline that has passed is not that.
func gone(r *http.Request) bool {
	err := r.Context().Err()
	return err != nil && errors.Is(err, context.Canceled)
}

// leave gives a client that went away no answer. The status is for whoever
// canceled the context while the client is still there: net/http would send it
// 200.
func leave(w http.ResponseWriter) {
	h := w.Header()
	delete(h, policyField)
	delete(h, limitField)
	w.WriteHeader(http.StatusServiceUnavailable)
}
