package httpmw

import (
	"context"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// LeaseFrom returns the lease of the request, so that the handler can see the
// remaining units and correct the cost once it is known:
//
//	httpmw.LeaseFrom(r.Context()).Settle(rows)
//
// Of several middlewares it is the lease of the innermost with
// [WithLeaseInContext]. With the name of a policy it is the lease of that policy,
// of any of those middlewares, to settle it by itself:
//
//	httpmw.LeaseFrom(r.Context(), "tokens").Settle(used)
//
// Elsewhere, for requests that pass unlimited, and under a name that no policy of the
// request has, it is a zero Lease, never nil; settling it does nothing. A name that no
// policy of the middlewares around the request has, in any plan, is logged once with the
// code httpmw.unknown_policy. Use the lease until the handler returns, and from one
// goroutine at a time. Release it, which is rarely needed, only while no other goroutine reads
// the body or writes the response.
func LeaseFrom(ctx context.Context, policy ...string) *algo.Lease {
	return admission.LeaseFrom(ctx, &warnUnknown, policy...)
}

// follow serves under a lease on the heap, and follows the request to its outcome.
func (h *handler) follow(w http.ResponseWriter, r *http.Request, ps *policies) {
	lease := new(trackedLease)
	lease.users.Store(1)
	var watched *writer
	returned := false
	defer func() { h.endTracked(lease, watched, r, returned) }()
	if !h.admitTracked(w, r, ps, lease) {
		return
	}
	inner := r
	if h.LeaseInContext {
		shareTrailer(r)
		lease.AwaitClient(false) // later calls may coincide with those of the handler
		inner = inner.WithContext(admission.WithLease(r.Context(), &lease.Lease))
	}
	if ps.watches && lease.Allowed {
		lease.watchClient(r)
		if r.Method != http.MethodConnect || r.ProtoMajor < 3 { // else w is upgraded through types of its own package
			w, watched = watch(w, lease)
			inner = watched.watchBody(inner)
		}
	}
	if inner != r {
		defer giveBack(r, inner)
	}
	h.next.ServeHTTP(w, inner)
	returned = true
}

// admitTracked decides on r, and notes the policies that were charged. A wait ends with the
// patience of the client.
func (h *handler) admitTracked(w http.ResponseWriter, r *http.Request, ps *policies, lease *trackedLease) bool {
	ctx := r.Context()
	if ps.watches {
		ctx = h.withPatience(ctx, r.Header)
	}
	var v verdict
	ps.Admit(ctx, r, &lease.Lease.Lease, &v)
	if h.LeaseInContext && lease.Allowed {
		lease.Policies = v.Named(ps.names)
	}
	return h.answer(w, r, ps, &v)
}

// giveBack copies the results of the handler from its copy of the request to r:
// the server removes the files of the form, and middlewares around this one log
// the pattern and the parts of the path that it names.
func giveBack(r, copied *http.Request) {
	r.MultipartForm = copied.MultipartForm
	if r.Pattern == copied.Pattern {
		return
	}
	r.Pattern = copied.Pattern
	for part := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && part != "{$}" {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			r.SetPathValue(name, copied.PathValue(name))
		}
	}
}

// endTracked ends the handler's use of the lease. The outcome is found under a
// defer of its own, because refundIf may panic.
func (h *handler) endTracked(lease *trackedLease, w *writer, r *http.Request, returned bool) {
	outcome := algo.Failed
	defer func() { lease.drop(outcome) }()
	if lease.Allowed {
		outcome = h.outcomeOf(lease, w, r, returned)
	}
}
