package httpmw

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
)

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
	if h.skip != nil && h.skip(r) {
		passUnlimited(&h.Settings, h.next, w, r)
		return
	}
	h.limit(w, r)
	if r.Method == http2Preface {
		warnIfH2C(w, h.policies[0].Name)
	}
}

// limit serves a request that is not skipped.
func (h *handler) limit(w http.ResponseWriter, r *http.Request) {
	for _, p := range h.policies {
		for _, c := range p.connections {
			c.SharesConnection(r.ProtoMajor > 1)
		}
	}
	if h.wrapsWriter || h.LeaseInContext {
		h.serveTracked(w, r)
	} else {
		h.servePlain(w, r)
	}
}

// servePlain serves under a lease that no other goroutine sees, and that stays
// on the stack. The deferred release runs when the handler panics, with
// http.ErrAbortHandler too, and when it exits its goroutine; it is set before
// the limiter is called, so that nothing can come between.
func (h *handler) servePlain(w http.ResponseWriter, r *http.Request) {
	var lease algo.Lease
	outcome := algo.Failed
	defer func() { lease.Release(outcome) }()
	if _, pass := h.admit(&lease, w, r); !pass {
		return
	}
	h.next.ServeHTTP(w, r)
	outcome = algo.Succeeded
}

// admit decides on r, and returns the names of the policies that were charged. A wait
// for quota ends with the context of r. If it returns false, the request has been answered. If it returns true and the lease is zero, the request passes unlimited.
func (m *middleware) admit(lease *algo.Lease, w http.ResponseWriter, r *http.Request) (names []admission.Named, pass bool) {
	if m.all != nil {
		*lease, names, pass = m.all(m, w, r)
		return names, pass
	}
	ctx := r.Context()
	p := m.policies[0]
	a := admission.Attempt{Reserve: m.reserveOf(r)}
	if m.wrapsWriter {
		ctx = m.withPatience(ctx, r.Header)
	}
	result := p.Admit(ctx, r, lease, &a)
	if result != Allowed {
		return nil, m.respond(w, r, p, &a, result, &lease.Decision)
	}
	advertised := m.advertise(w, p.Policy, &lease.Decision)
	if m.Observe != nil {
		p.Report(&a, Allowed, &lease.Decision, "", 0, m.sentFields(w.Header(), advertised))
	}
	return m.names, true
}

// respond reports every decision but an admission, and answers the request
// unless it passes.
func (m *middleware) respond(w http.ResponseWriter, r *http.Request, p *policy, a *admission.Attempt, result Result, d *algo.Decision) bool {
	switch result {
	case admission.Skipped:
		return true
	case FailedOpen:
		p.Report(a, result, d, "", 0, telemetry.Sent{})
		return true
	case Canceled:
		p.Report(a, result, d, "", 0, telemetry.Sent{})
		abandon(w)
		return false
	}
	f, advertised := refusal{status: http.StatusServiceUnavailable, body: failedBody}, false
	switch {
	case result != Denied:
	case a.Cause == admission.ByMissingKey:
		f.status = p.MissingStatus(http.StatusUnauthorized)
		f.policy, f.body = p.Name, problemBody(f.status)
	default:
		f.policy, f.body = p.Name, p.capacityBody
		if d.Reason != algo.Overload {
			f.status, f.body = http.StatusTooManyRequests, p.quotaBody
		}
		if d.Reason == algo.Banned {
			f.ban(p.Name)
		}
		advertised = m.advertise(w, p.Policy, d)
	}
	f.setWait(a.RetryAfter(result, d), d.ResetAfter)
	if m.prepare(&f, r); f.protocol.kind == grpc {
		f.violates(p.Name, a.Key)
	}
	if m.Observe != nil {
		p.Report(a, result, d, "", f.status, f.addWaits(m.sentFields(w.Header(), advertised)))
	}
	m.writeRefusal(w, r, &f, d)
	return false
}

// addWaits adds the waits of a refusal to the fields addWaits sent.
func (f *refusal) addWaits(sent telemetry.Sent) telemetry.Sent {
	sent.RetryAfter, sent.Pushback = time.Duration(f.retry)*time.Second, f.pushback
	return sent
}

// abandon ends a request whose context has ended, without a body: the client
// went away, or a handler around this one has answered. Without the status,
// net/http would send 200 to a client that is still there.
func abandon(w http.ResponseWriter) {
	markRefused(w)
	w.WriteHeader(http.StatusServiceUnavailable)
}

// markRefused tells the limits further out that the work was not begun, as far as the writers
// between them have Unwrap.
func markRefused(w http.ResponseWriter) {
	for {
		if outer, ok := w.(interface{ refused() }); ok {
			outer.refused()
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = u.Unwrap()
	}
}

// built counts the middlewares that have served a request, and those that have
// served a second one.
var built struct{ first, second atomic.Int64 }

// manyBuilt is how many middlewares must have served before the warning: more
// than a service has routes.
const manyBuilt = 1000

// countServed finds middlewares that are built for each request: their limiters
// may be as short-lived.
func (h *handler) countServed() {
	switch h.served.Add(1) {
	case 1:
		if n := built.first.Add(1); n >= manyBuilt && built.second.Load() < n/16 {
			warnRebuilt.Log("middlewares=" + strconv.FormatInt(n, 10))
		}
	case 2:
		built.second.Add(1)
	}
}
