package httpmw

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
)

// HeadersMode is which fields advertise limits to clients.
type HeadersMode uint8

const (
	// IETF sends RateLimit-Policy and RateLimit as structured fields
	// (draft-ietf-httpapi-ratelimit-headers-11, RFC 9651). Further limits on
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

	// retryAfterMsField is Retry-After in milliseconds, without a standard; clients
	// of Azure and OpenAI read it.
	retryAfterMsField = "Retry-After-Ms"

	// The fields without a standard, which have room for one limit only.
	legacyLimit     = "X-Ratelimit-Limit"
	legacyRemaining = "X-Ratelimit-Remaining"
	legacyReset     = "X-Ratelimit-Reset"
)

// advertise sets the fields of one decision, and reports whether there are any.
func (m *middleware) advertise(w http.ResponseWriter, p *admission.Policy[*http.Request], d *algo.Decision) bool {
	if m.headers == None || !p.InForce(d) {
		return false
	}
	h := w.Header()
	if m.legacy != IETF {
		advertiseLegacy(h, p, d, m.legacy)
	}
	if m.headers == IETF {
		item := p.PolicyItem(d.Limit)
		setFields(h, &[2]string{item.Text, p.LimitItem(d, item)})
	}
	return true
}

// sentFields returns, for an observer, the fields that advertise has set.
func (m *middleware) sentFields(h http.Header, advertised bool) (sent telemetry.Sent) {
	if advertised {
		sent = m.lastFields(h)
	}
	return sent
}

// lastFields reads back, for an observer, the fields of this middleware.
func (m *middleware) lastFields(h http.Header) (sent telemetry.Sent) {
	if m.headers == IETF {
		sent.Policy, sent.Limit = last(h[policyField]), last(h[limitField])
	} else if m.headers != None {
		sent.Policy, sent.Limit, sent.Reset = last(h[legacyLimit]), last(h[legacyRemaining]), last(h[legacyReset])
	}
	return sent
}

func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
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

// addField adds a line and keeps the lines of other limits.
func addField(h http.Header, name string, line []string) {
	if before := h[name]; len(before) > 0 {
		if name == policyField {
			warnIfTwice(before, line[0])
		}
		line = append(before[:len(before):len(before)], line...)
	}
	h[name] = line
}

// advertiseLegacy sets the fields, unless a tighter limit has set them before.
func advertiseLegacy(h http.Header, p *admission.Policy[*http.Request], d *algo.Decision, mode HeadersMode) {
	if before := h[legacyRemaining]; len(before) > 0 {
		left, err := strconv.ParseInt(before[0], 10, 64)
		if err == nil && left <= d.Remaining {
			return
		}
	}
	items := p.LegacyItems(d, resetValue(d.ResetAfter, mode))
	values := &items
	h[legacyLimit] = values[0:1:1]
	h[legacyRemaining] = values[1:2:2]
	h[legacyReset] = values[2:3:3]
}

// resetValue is the seconds until the whole quota is there again, or that
// instant, rounded up.
func resetValue(after time.Duration, mode HeadersMode) int64 {
	if mode != LegacyEpoch {
		return admission.Seconds(after)
	}
	at := time.Now().Add(after)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}
