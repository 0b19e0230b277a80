package httpmw

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/inflight"
	"github.com/sluice-go/sluice/internal/warning"
)

// policies holds the policies that decide on a request.
type policies struct {
	*admission.Policies[*http.Request]
	bodies      [][]string // problem details of refusals, by policy and blame
	connections []connections
	// watches: the response writer must be wrapped, to see the status or a hijack.
	watches bool
}

func (m *middleware) newPolicies(decide *admission.Policies[*http.Request]) *policies {
	ps := &policies{Policies: decide, watches: decide.NeedsRelease || m.Own.refundIf != nil}
	for _, p := range decide.All {
		ps.bodies = append(ps.bodies, problems(p))
		ps.connections = append(ps.connections, connectionsOf(p.Limiter)...)
	}
	return ps
}

// middleware is the immutable part that all handlers of one middleware share.
type middleware struct {
	*admission.Config[*http.Request, ownOptions]
	fixed   *policies // nil: those of the request's plan
	plans   *admission.Plans[*http.Request, *policies]
	unknown *policies // of requests whose plan is not known
}

// handler is a middleware around one handler.
type handler struct {
	*middleware
	next   http.Handler
	served atomic.Uint32 // requests, up to 2; see countServed
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.served.Load() < 2 {
		h.countServed()
	}
	if h.Own.skip != nil && h.Own.skip(r) {
		h.unlimited(w, r)
		return
	}
	ps := h.fixed
	if ps == nil {
		var err error
		if ps, err = h.plans.Choose(r); err != nil {
			h.undecided(w, r, err)
			return
		}
	}
	for _, c := range ps.connections {
		c.SharesConnection(r.ProtoMajor > 1)
	}
	if ps.watches || h.LeaseInContext {
		h.follow(w, r, ps)
	} else {
		h.plain(w, r, ps)
	}
}

// plain serves under a lease that no other goroutine sees and that stays on the
// stack. It defers the release before it calls the limiter, so that no panic,
// http.ErrAbortHandler or exit of the goroutine can leak the lease.
func (h *handler) plain(w http.ResponseWriter, r *http.Request, ps *policies) {
	var lease algo.Lease
	outcome := algo.Failed
	defer func() { lease.Release(outcome) }()
	if !h.admit(r.Context(), w, r, ps, &lease) {
		return
	}
	h.next.ServeHTTP(w, r)
	outcome = algo.Succeeded
}

// admit decides on r and answers it if it does not pass.
func (h *handler) admit(ctx context.Context, w http.ResponseWriter, r *http.Request, ps *policies, lease *algo.Lease) bool {
	var room [admission.Few]algo.Request
	reqs, pass, err := ps.Try(ctx, r, lease, room[:])
	if pass && h.Own.headers == None {
		return true
	}
	if pass && len(ps.All) == 1 {
		h.Own.advertise(w.Header(), []part{{Policy: ps.All[0], Decision: lease.Decision}})
		return true
	}
	var v verdict // here, so that it does not burden the stack beneath the handler
	ps.Admit(ctx, r, lease, &v, reqs, err)
	return h.answer(w, r, ps, &v)
}

// follow serves under a lease on the heap and follows the request to its outcome.
func (h *handler) follow(w http.ResponseWriter, r *http.Request, ps *policies) {
	f := inflight.Begin(r, h.Own.refundIf)
	defer f.End()
	ctx, pass := h.admitInFlight(w, r, ps, &f)
	if !pass {
		return
	}
	if ps.watches && f.Lease().Allowed {
		w = f.Watch(w)
	}
	h.next.ServeHTTP(w, f.Request(ctx))
	f.Returned()
}

// admitInFlight decides as admit does and returns the context for the handler. A wait ends when the
// client's own time limit does.
func (h *handler) admitInFlight(w http.ResponseWriter, r *http.Request, ps *policies, f *inflight.Flight) (ctx context.Context, pass bool) {
	ctx = r.Context()
	if ps.watches {
		ctx = f.Patience()
	}
	if !h.LeaseInContext {
		return r.Context(), h.admit(ctx, w, r, ps, f.Lease())
	}
	var v verdict
	if ps.Admit(ctx, r, f.Lease(), &v, nil, nil); !h.answer(w, r, ps, &v) {
		return nil, false
	}
	f.Lease().AwaitClient(false) // later calls may coincide with those of the handler
	return ps.WithLease(r.Context(), f.Lease(), &v), true
}

// undecided answers a request whose plan could not be found.
func (h *handler) undecided(w http.ResponseWriter, r *http.Request, err error) {
	var v verdict
	h.unknown.Undecided(r.Context(), &v, err)
	if h.answer(w, r, h.unknown, &v) {
		h.unlimited(w, r)
	}
}

// unlimited serves a request without a lease. With WithLeaseInContext it marks the context,
// so that LeaseFrom and a Meter do not warn.
func (h *handler) unlimited(w http.ResponseWriter, r *http.Request) {
	if h.LeaseInContext {
		inner := inflight.Copy(h.Unlimited(r.Context()), r)
		defer inflight.GiveBack(r, inner)
		r = inner
	}
	h.next.ServeHTTP(w, r)
}

// built counts the middlewares that have served a request. One that has served a second one
// offsets 16.
var built warning.Share

// manyBuilt is more than a service has routes.
const manyBuilt = 1000

// countServed warns of middlewares that are built for each request, because their limiters
// may be built as often.
func (h *handler) countServed() {
	switch h.served.Add(1) {
	case 1:
		if built.Odd(manyBuilt) {
			warnRebuilt.Log()
		}
	case 2:
		built.Usual(16)
	}
}
