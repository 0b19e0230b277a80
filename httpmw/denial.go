package httpmw

import (
	"context"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// Denial describes a refused request to a handler given to [WithDenied].
type Denial struct {
	// Status is 429 if the client has used up its quota, 503 if the server
	// lacks capacity or could not decide, and the status of [WithMissingKey] if the request
	// has no key.
	Status int
	// Policy is the name of the limit, of several the one that denied for the gravest
	// reason; "" if the request could not be decided.
	Policy string
	// Decision is the limiter's decision; its Cause is for logs.
	Decision algo.Decision
}

type denialKey struct{}

// DenialFrom returns the denial that a handler given to [WithDenied] answers,
// false elsewhere.
func DenialFrom(ctx context.Context) (Denial, bool) {
	d, ok := ctx.Value(denialKey{}).(*Denial)
	if !ok {
		return Denial{}, false
	}
	return *d, true
}

// Answer answers for l, a limit that the handler asks, as [Limit] does for one that decides before
// it: an admission sets the RateLimit fields and returns true, a denial is written with the same
// status, fields and body.
//
//	lease, _ := exports.Acquire(r.Context(), user, rows)
//	if !httpmw.Answer(w, r, exports, user, lease.Decision) {
//		return
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire and d its decision; the zero Decision beside an error is answered
// as one that could not be made, with 503 and without the RateLimit fields. Of several limits in one
// decision, pass one that denied and its part of algo.Lease.Parts. Call it before anything has
// been written. Charges of middlewares around the handler stay.
//
// It takes [WithName], [WithHeaders], [WithCause] and [WithDenied], and panics as Limit does. It costs some
// microseconds more than Limit: against floods, limit before the handler too.
func Answer(w http.ResponseWriter, r *http.Request, l algo.Limiter, key string, d algo.Decision, opts ...Option) (admitted bool) {
	s := configure(adapter, "Answer", forAnswer, opts)
	known := func(*http.Request) (string, error) { return key, nil }
	m := &middleware{Config: s}
	ps := m.newPolicies(admission.NewPolicies(adapter, &s.Settings, l, known, "Answer"))
	var v verdict
	ps.Decided(&v, key, d)
	return m.answer(w, r, ps, &v)
}
