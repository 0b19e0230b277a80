package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// WriteDenial answers a request that l denied in the handler, as [Limit] answers one that is
// denied before it: the same status, fields and body, in the protocol of the client.
//
//	lease, err := exports.Acquire(r.Context(), user, rows)
//	if err != nil || !lease.Allowed {
//		httpmw.WriteDenial(w, r, exports, user, lease.Decision)
//		return
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire and d its decision. Of several limits in one decision, pass
// one that denied and its part of algo.Lease.Parts. A decision that is no denial, such as the
// zero Decision beside an error, is answered as one that could not be made: 503, without the
// RateLimit fields. Call it before anything has been written. Charges of middlewares around
// the handler stay.
//
// It takes [WithName], [WithUnit] and [WithHeaders], and panics as Limit does. It costs some
// microseconds more than a denial of Limit: against floods, limit before the handler too.
func WriteDenial(w http.ResponseWriter, r *http.Request, l algo.Limiter, key string, d algo.Decision, opts ...Option) {
	m := newMiddleware(configure(adapter, "WriteDenial", forDenial, opts))
	known := func(*http.Request) (string, error) { return key, nil }
	m.addPolicies(admission.NewPolicy(adapter, &m.Settings, l, known, "WriteDenial"))
	result := Denied
	if d.Reason == algo.Admitted {
		result, d = FailedClosed, algo.Decision{}
	}
	m.respond(w, r, m.policies[0], &admission.Attempt{Key: key, Context: r.Context()}, result, &d)
}
