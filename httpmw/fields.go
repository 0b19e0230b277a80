package httpmw

import (
	"math"
	"net/http"
	"strconv"

	"github.com/sluice-go/sluice/algo"
)

// HeadersMode is what clients are told of the limits that they pass.
type HeadersMode uint8

const (
	// IETF sends RateLimit-Policy and RateLimit as structured fields
	// (draft-ietf-httpapi-ratelimit-headers-10, RFC 9651). Further limits on
	// the same request add their own lines.
	IETF HeadersMode = iota
	// Legacy sends X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset of the tightest limit, with the seconds until its whole
	// quota is there again.
	Legacy
	// None sends nothing but Retry-After on denials. Use it where the state of
	// the limit helps an attacker: logins, one-time passwords.
	None
	// LegacyEpoch is Legacy with the reset as Unix time in seconds.
	LegacyEpoch
)

// The names as http.Header keeps them; setting them directly saves the
// canonicalization.
const (
	policyField     = "Ratelimit-Policy"
	limitField      = "Ratelimit"
	retryAfterField = "Retry-After"
)

// mostNumber is the largest integer of a structured field (RFC 9651 section
// 3.3.1).
const mostNumber = 999_999_999_999_999

func appendNumber(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), mostNumber), 10)
}

// policyText is the rendered item of RateLimit-Policy for one limit in force.
type policyText struct {
	description algo.Description
	text        string
}

// describe returns the item of RateLimit-Policy. It is rendered when the limit
// changes. A limiter that cannot describe itself promises its Limit.
func (r *rule) describe(limit int64) *policyText {
	d, ok := algo.Describe(r.limiter)
	if !ok {
		d = algo.Description{Quota: limit}
	}
	if p := r.policy.Load(); p != nil && p.description == d {
		return p
	}
	p := &policyText{d, r.renderPolicy(d)}
	r.policy.Store(p)
	return p
}

// renderPolicy: q is the quota, w the window in seconds, qu the unit if it is
// not the default.
func (r *rule) renderPolicy(d algo.Description) string {
	b := append([]byte{'"'}, r.name...)
	b = appendNumber(append(b, `";q=`...), d.Quota)
	if d.Unit == algo.ConcurrentRequests {
		return string(append(b, `;qu="concurrent-requests"`...))
	}
	if d.Window > 0 {
		b = appendNumber(append(b, ";w="...), seconds(d.Window))
	}
	return string(b)
}

// appendLimit appends the item of RateLimit: r is what remains, t the seconds
// until more is available, rounded up. t is left out when nothing is spent,
// where time plays no part, and when the limiter does not know.
func (r *rule) appendLimit(b []byte, d *algo.Decision, p *policyText) []byte {
	b = appendNumber(append(b, r.prefix...), d.Remaining)
	if t := until(d, p); t > 0 {
		b = appendNumber(append(b, ";t="...), t)
	}
	return b
}

// until is the t of a RateLimit item, 0 if it has none. A limiter that delays
// may admit a denied request again before anything could start at once; more is
// available then.
func until(d *algo.Decision, p *policyText) int64 {
	if p.description.Unit == algo.ConcurrentRequests || d.Remaining >= p.description.Quota {
		return 0
	}
	after := d.NextAfter
	if !d.Allowed && d.RetryAfter > 0 {
		after = min(after, d.RetryAfter)
	}
	if after == algo.Forever {
		return 0
	}
	return max(seconds(after), 0)
}

// inForce reports whether d speaks of a limit that the request was held to.
// One that is switched off, on trial or unknown must not be told: a client that
// listens would stop for it.
func (r *rule) inForce(d *algo.Decision) bool {
	switch {
	case d.Limit == unbounded && r.countsInFlight():
		return false
	case !d.Allowed:
		return true
	case d.Source == algo.SourceOff || d.Source == algo.SourceShadowed:
		return false
	case d.Limit > 0:
		return true
	}
	_, known := algo.Describe(r.limiter)
	return known
}

// unbounded is the limit of what is in flight while an adaptive limiter sees no
// reason for one. It may deny for another: the queue in front of the processor.
const unbounded = math.MaxInt32

// countsInFlight is true as well where the limiter cannot tell.
func (r *rule) countsInFlight() bool {
	d, ok := algo.Describe(r.limiter)
	return !ok || d.Unit == algo.ConcurrentRequests
}

// advertise sets the fields of one decision.
func (g *guard) advertise(h http.Header, r *rule, d *algo.Decision) {
	if g.headers == None || !r.inForce(d) {
		return
	}
	if g.headers != IETF {
		advertiseLegacy(h, d, g.headers)
		return
	}
	p := r.describe(d.Limit)
	var buf [128]byte // a name of 64 and two numbers of 15 fit
	text := string(r.appendLimit(buf[:0], d, p))
	setFields(h, &[2]string{p.text, text})
}

// setFields adds a line to each of the two fields. The capacity of a line is
// its length, so no two fields ever share memory.
func setFields(h http.Header, values *[2]string) {
	if len(h) > 0 {
		addField(h, policyField, values[0:1:1])
		addField(h, limitField, values[1:2:2])
		return
	}
	h[policyField] = values[0:1:1]
	h[limitField] = values[1:2:2]
}

// addField adds a line and keeps those of other limits.
func addField(h http.Header, name string, line []string) {
	if before := h[name]; len(before) > 0 {
		if name == policyField {
			warnIfTwice(before, line[0])
		}
		line = append(before[:len(before):len(before)], line...)
	}
	h[name] = line
}
