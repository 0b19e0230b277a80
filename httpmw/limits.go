package httpmw

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
)

// fewPolicies is how many policies need no allocation for their lists.
const fewPolicies = 4

type candidate = admission.Candidate[*http.Request]

// admitAll is admit for several policies.
func (m *middleware) admitAll(w http.ResponseWriter, r *http.Request) (lease algo.Lease, names []admission.Named, pass bool) {
	returned := false
	defer func() {
		if !returned { // an observer panics
			lease.Release(algo.Failed)
		}
	}()
	names, pass = m.decideAll(&lease, w, r)
	returned = true
	return lease, names, pass
}

func (m *middleware) decideAll(lease *algo.Lease, w http.ResponseWriter, r *http.Request) (names []admission.Named, pass bool) {
	ctx := r.Context()
	var roomForAll [fewPolicies]candidate
	var roomForReqs [fewPolicies]algo.Request
	all, reqs := roomForAll[:0], roomForReqs[:0]
	for _, p := range m.policies {
		c := candidate{Policy: p.Policy}
		result := p.KeyAndCost(ctx, r, lease, &c.Attempt)
		if result == Allowed {
			all = append(all, c)
			reqs = append(reqs, algo.Request{Limiter: p.Limiter, Key: c.Attempt.Key, N: c.Attempt.Cost})
		} else if !m.respond(w, r, p, &c.Attempt, result, &lease.Decision) {
			return nil, false
		}
	}
	if len(all) == 0 {
		return nil, true
	}
	if m.wrapsWriter {
		ctx = m.withPatience(ctx, r.Header)
	}
	parts, result := admission.AcquireAll(ctx, lease, all, reqs)
	switch result {
	case Allowed:
		m.advertiseAll(w.Header(), all, parts)
		m.reportAll(w.Header(), all, parts, nil)
		return m.namesOf(all), true
	case Denied:
		m.advertiseAll(w.Header(), all, parts)
		m.denyAll(w, r, all, parts, &lease.Decision)
		return nil, false
	}
	// Canceled, or a limiter failed: which one is not known.
	f := refusal{status: http.StatusServiceUnavailable, body: failedBody}
	f.setWait(all[0].RetryAfter(result, &lease.Decision), 0)
	m.prepare(&f, r)
	for i := range all {
		c, part, status, sent := &all[i], &algo.Decision{}, 0, telemetry.Sent{}
		if parts != nil {
			part = &parts[i]
		}
		if result == FailedClosed {
			status, sent = f.status, f.addWaits(sent)
		}
		c.Report(&c.Attempt, result, part, "", status, sent)
	}
	switch result {
	case FailedOpen:
		return nil, true
	case Canceled:
		abandon(w)
	default:
		m.writeRefusal(w, r, &f, &algo.Decision{})
	}
	return nil, false
}

// namesOf returns the names of the policies that were not left out.
func (m *middleware) namesOf(all []candidate) []admission.Named {
	if len(all) == len(m.names) || !m.LeaseInContext {
		return m.names
	}
	names := make([]admission.Named, len(all))
	for i := range all {
		names[i] = all[i].Named()
	}
	return names
}

// unknown is the decision of a limit that was not evaluated, after another one
// had denied.
func unknown(d *algo.Decision) bool { return !d.Allowed && d.Reason == algo.Admitted }

// denyAll answers the denial d. Observers get the policies that had no room;
// the others are not charged.
func (m *middleware) denyAll(w http.ResponseWriter, r *http.Request, all []candidate, parts []algo.Decision, d *algo.Decision) {
	f := refusal{status: http.StatusTooManyRequests}
	if d.Reason == algo.Overload {
		f.status = http.StatusServiceUnavailable
	}
	var violated []string
	for i := range all {
		c, part := &all[i], &parts[i]
		if part.Allowed || unknown(part) {
			continue
		}
		violated = append(violated, c.Name)
	}
	f.setWait(all[0].RetryAfter(Denied, d), d.ResetAfter)
	f.body = problemBody(f.status, violated...)
	if d.Reason == algo.Banned {
		f.ban(violated...)
	}
	if len(violated) > 0 {
		f.policy = violated[0]
	}
	m.prepare(&f, r)
	for i := range all {
		if f.protocol.kind == grpc && slices.Contains(violated, all[i].Name) {
			f.violates(all[i].Name, all[i].Attempt.Key)
		}
	}
	m.reportAll(w.Header(), all, parts, &f)
	m.writeRefusal(w, r, &f, d)
}

// reportAll reports an admission, or the policies that had no room.
func (m *middleware) reportAll(h http.Header, all []candidate, parts []algo.Decision, f *refusal) {
	if m.Observe == nil {
		return
	}
	items := m.lastFields(h)
	for i := range all {
		c, part := &all[i], &parts[i]
		sent := telemetry.Sent{Policy: items.Policy, Limit: items.Limit, Reset: items.Reset}
		if m.headers == IETF {
			sent = telemetry.Sent{}
			if c.InForce(part) {
				sent.Policy, items.Policy, _ = strings.Cut(items.Policy, ", ") // no item has a comma within
				if !unknown(part) {
					sent.Limit, items.Limit, _ = strings.Cut(items.Limit, ", ")
				}
			}
		} else if !c.InForce(part) {
			sent = telemetry.Sent{}
		}
		switch {
		case f == nil:
			c.Report(&c.Attempt, Allowed, part, "", 0, sent)
		case !part.Allowed && !unknown(part):
			c.Report(&c.Attempt, Denied, part, "", f.status, f.addWaits(sent))
		}
	}
}

// advertiseAll sets the fields with an item for each policy.
func (m *middleware) advertiseAll(h http.Header, all []candidate, parts []algo.Decision) {
	if m.legacy != IETF {
		for i := range all {
			if all[i].InForce(&parts[i]) {
				advertiseLegacy(h, all[i].Policy, &parts[i], m.legacy)
			}
		}
	}
	if m.headers != IETF {
		return
	}
	var buf [512]byte
	b := buf[:0]
	for i := range all {
		if all[i].InForce(&parts[i]) {
			b = separate(b, 0)
			b = append(b, all[i].PolicyItem(parts[i].Limit).Text...)
		}
	}
	split := len(b)
	for i := range all {
		if c, part := &all[i], &parts[i]; c.InForce(part) && !unknown(part) {
			b = separate(b, split)
			b = c.AppendLimit(b, part, c.PolicyItem(part.Limit))
		}
	}
	if split > 0 {
		text := string(b)
		setFields(h, &[2]string{text[:split], text[split:]})
	}
}

// separate appends the separator between two items of the list that begins at
// from.
func separate(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return b
}
