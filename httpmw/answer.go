package httpmw

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/inflight"
)

// Answer answers for l, a limit that the handler acquires from, as [Limit] does before the handler:
// for an admission it sets the RateLimit fields and returns true; it writes a denial with the same
// status, fields and body.
//
//	lease, _ := exports.Acquire(r.Context(), user, rows)
//	if !httpmw.Answer(w, r, exports, user, lease.Decision) {
//		return
//	}
//	defer lease.Release(algo.Succeeded)
//
// key is the argument of Acquire and d its decision. For the zero Decision, which comes with an error,
// it writes 503 without the RateLimit fields. Of several limits in one decision, pass one that denied
// and its part of algo.Lease.Parts. Call Answer before the first write. Charges of middlewares around
// the handler stay.
//
// Answer takes [WithName], [WithHeaders], [WithCause] and [WithDenied], and panics as Limit does. It
// takes some microseconds longer than Limit: against floods, limit before the handler too.
func Answer(w http.ResponseWriter, r *http.Request, l algo.Limiter, key string, d algo.Decision, opts ...Option) (admitted bool) {
	s := configure(adapter, "Answer", forAnswer, opts)
	known := func(*http.Request) (string, error) { return key, nil }
	m := &middleware{Config: s}
	ps := m.newPolicies(admission.NewPolicies(adapter, &s.Settings, l, known, "Answer"))
	var v verdict
	ps.Decided(&v, key, d)
	return m.answer(w, r, ps, &v)
}

// answer sets the fields of v, reports v, and writes the answer if the request does not pass.
func (m *middleware) answer(w http.ResponseWriter, r *http.Request, ps *policies, v *verdict) (pass bool) {
	decided := v.Result == telemetry.Allowed || v.Result == telemetry.Denied && v.Blame != admission.Keyless
	if decided && m.Own.headers != None {
		m.Own.advertise(w.Header(), v.Parts())
	}
	switch {
	case v.Pass():
		if m.Observe != nil {
			m.report(w, r, ps, v, nil, decided)
		}
		return true
	case v.Blame == admission.Gone:
		m.report(w, r, ps, v, nil, false)
		abandon(w)
	default:
		f := m.newRefusal(ps, v)
		m.report(w, r, ps, v, &f, decided)
		m.writeRefusal(w, r, &f, v)
	}
	return false
}

// report reports v to the observer, if there is one. f is the answer to a refusal; decided reports
// whether there are fields.
func (m *middleware) report(w http.ResponseWriter, r *http.Request, ps *policies, v *verdict, f *refusal, decided bool) {
	if m.Observe == nil {
		return
	}
	fields, status, sent := m.Own.sentFields(w.Header()), 0, telemetry.Sent{}
	if f != nil {
		status, sent.RetryAfter = f.Status, time.Duration(v.Seconds())*time.Second
	}
	ps.Report(r.Context(), v, "", status, func(p part) telemetry.Sent {
		one := sent
		if decided {
			items := fields(p)
			one.Policy, one.Limit, one.Reset = items.Policy, items.Limit, items.Reset
		}
		return one
	})
}

// refusal is an answer to a request that must not go on.
type refusal struct {
	admission.Answer
	policy string // the limit that is to blame
	body   string // problem details
}

func (m *middleware) newRefusal(ps *policies, v *verdict) refusal {
	p, parts := v.Gravest(), v.Parts()
	f := refusal{Answer: p.Answer(v.Blame), policy: p.Name, body: ps.bodies[p.Index][v.Blame]}
	if len(parts) > 1 {
		f.body = problem(f.Answer, violated(parts)...)
	}
	if cause := v.Decision().Cause.String(); m.Own.cause && cause != "" {
		f.body = strings.TrimSuffix(f.body, "}\n") + `,"cause":"` + cause + "\"}\n"
	}
	if v.Blame == admission.Undecided {
		f.policy = ""
	}
	return f
}

// violated returns the names of the policies that had no room.
func violated(parts []part) (names []string) {
	for i := range parts {
		if p := &parts[i]; p.Denied() {
			names = append(names, p.Name)
		}
	}
	return names
}

// writeRefusal writes the answer after the RateLimit fields have been set. It includes
// nothing of the request, and no error's text.
func (m *middleware) writeRefusal(w http.ResponseWriter, r *http.Request, f *refusal, v *verdict) {
	inflight.Refused(w)
	h := w.Header()
	dropForeign(h)
	values := &[5]string{"no-store", "nosniff", problemType}
	h["Cache-Control"] = values[0:1:1]
	h["X-Content-Type-Options"] = values[1:2:2]
	m.Own.setRetryFields(h, (*[2]string)(values[3:]), v)
	if m.Own.denied != nil {
		d := &Denial{Status: f.Status, Policy: f.policy, Decision: *v.Decision()}
		inner := inflight.Copy(context.WithValue(r.Context(), denialKey{}, d), r)
		defer inflight.GiveBack(r, inner)
		m.Own.denied.ServeHTTP(w, inner)
		return
	}
	body := f.body
	if prefersText(r) {
		values[2], body = plainType, f.Title+".\n"
	}
	h["Content-Type"] = values[2:3:3]
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // best effort: the client may be gone
	}
}

// dropForeign removes the fields that a handler around the limit has set for its own answer: they
// could make a cache serve one client's denial to all, or a proxy send a file instead.
// Content-Encoding stays, as with http.Error, because the writer may compress.
func dropForeign(h http.Header) {
	for name := range h {
		switch canonical := http.CanonicalHeaderKey(name); canonical { // a handler may have written the map
		case "Cache-Control", "Content-Length", "Content-Range", "Content-Location", "Content-Disposition",
			"Content-Digest", "Content-Md5", "Digest", "Repr-Digest", "Etag", "Last-Modified", "Age", "Expires",
			"Surrogate-Control", "Edge-Control", "X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile", "X-Sendfile2",
			"X-Lighttpd-Send-File", "X-Litespeed-Location", retryAfterField, retryAfterMsField:
			delete(h, name)
		default:
			if strings.HasSuffix(canonical, "-Cache-Control") { // RFC 9213: of each kind of cache
				delete(h, name)
			}
		}
	}
}

// abandon answers a request whose context has ended with a status and no body: the
// client has gone, or a handler around this one has answered. Without the status
// net/http would send 200 to a client that is still connected.
func abandon(w http.ResponseWriter) {
	inflight.Refused(w)
	dropForeign(w.Header())
	w.WriteHeader(http.StatusServiceUnavailable)
}

const (
	problemType = "application/problem+json"
	plainType   = "text/plain; charset=utf-8"
)

// problems renders the problem details of each refusal by a policy.
func problems(p *admission.Policy[*http.Request]) []string {
	bodies := make([]string, len(admission.Blames)+1)
	for _, b := range admission.Blames {
		if b == admission.Keyless || b == admission.Undecided {
			bodies[b] = problem(p.Answer(b))
		} else {
			bodies[b] = problem(p.Answer(b), p.Name)
		}
	}
	return bodies
}

// problem renders problem details (RFC 9457), without anything of the request. The
// names of policies need no escaping.
func problem(a admission.Answer, violated ...string) string {
	b := []byte(`{"type":"` + a.Type + `","title":"` + a.Title + `","status":`)
	b = strconv.AppendInt(b, int64(a.Status), 10)
	if len(violated) > 0 {
		b = append(b, `,"violated-policies":["`+strings.Join(violated, `","`)+`"]`...)
	}
	return string(append(b, "}\n"...))
}

// maxAccept bounds the bytes read of an Accept field, so that a longer field does not make a
// denial more expensive.
const maxAccept = 512

// prefersText reports whether the client accepts text but no JSON by name, as browsers do.
func prefersText(r *http.Request) bool {
	lines := r.Header["Accept"]
	if len(lines) == 0 {
		return false
	}
	accept := lines[0][:min(len(lines[0]), maxAccept)]
	return strings.Contains(accept, "text/") && !strings.Contains(accept, "json")
}
