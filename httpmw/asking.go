package httpmw

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// asking is one request before one rule.
type asking struct {
	*guard
	rule *rule
	key  string
	n    int64
	w    http.ResponseWriter // nil in a client
	r    *http.Request

	// For an observer only.
	at     time.Time // when the answer was known
	waited time.Duration
}

// deny answers a denial. The RateLimit fields are set already.
func (a *asking) deny(d *algo.Decision) {
	if gone(a.r) {
		a.tell(Canceled, d, nothing, 0, context.Canceled)
		leave(a.w)
		return
	}
	status := a.rule.status(d, a.key)
	t := until(d, a.rule.describe(d.Limit))
	f := refusal{status: status, policy: a.rule.name, retry: retrySeconds(d, t), problem: a.rule.problemOf(status)}
	if a.observe != nil {
		a.tellRefused(Denied, d, a.fields(d), &f, nil)
	}
	a.refuse(a.w, a.r, f, d)
}

// undecided deals with an error of the limiter or of the key function, and
// reports whether the request goes on.
func (a *asking) undecided(err error) bool {
	result, f := a.judge(a.r, err), failed
	a.tellUndecided(result, &f, err)
	return a.survive(a.w, a.r, a.rule.name, result, f, err)
}

// failed refuses a request that could not be decided.
var failed = refusal{status: http.StatusServiceUnavailable, retry: 1, problem: failedBody}

func (a *asking) tellUndecided(result Result, f *refusal, err error) {
	switch {
	case a.observe == nil:
	case result == FailedClosed:
		a.tellRefused(result, nil, nothing, f, err)
	default:
		a.tell(result, nil, nothing, 0, err)
	}
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
func (g *guard) survive(w http.ResponseWriter, r *http.Request, policy string, result Result, f refusal, err error) bool {
	if result == Canceled {
		leave(w)
		return false
	}
	logFailure(policy, err)
	if result == FailedOpen {
		return true
	}
	g.refuse(w, r, f, &algo.Decision{})
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
