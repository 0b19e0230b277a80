package httpmw

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
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

	// The fields without a standard, each for one limit only.
	legacyLimit     = "X-Ratelimit-Limit"
	legacyRemaining = "X-Ratelimit-Remaining"
	legacyReset     = "X-Ratelimit-Reset"
)

// advertise sets the fields of a decision in h, with an item for each policy in force.
func (o *ownOptions) advertise(h http.Header, parts []part) {
	if o.legacy != IETF {
		for i := range parts {
			if p := &parts[i]; p.InForce(&p.Decision) {
				advertiseLegacy(h, p, o.legacy)
			}
		}
	}
	switch {
	case o.headers != IETF:
	case len(parts) == 1:
		if p := &parts[0]; p.InForce(&p.Decision) {
			item := p.PolicyItem(p.Decision.Limit)
			setFields(h, &[2]string{item.Text, p.LimitItem(&p.Decision, item)})
		}
	default:
		advertiseAll(h, parts)
	}
}

func advertiseAll(h http.Header, parts []part) {
	var buf [512]byte
	b := buf[:0]
	for i := range parts {
		if p := &parts[i]; p.InForce(&p.Decision) {
			b = append(separate(b, 0), p.PolicyItem(p.Decision.Limit).Text...)
		}
	}
	split := len(b)
	for i := range parts {
		if p := &parts[i]; p.InForce(&p.Decision) && !p.Unknown() {
			b = p.AppendLimit(separate(b, split), &p.Decision, p.PolicyItem(p.Decision.Limit))
		}
	}
	if split > 0 {
		text := string(b)
		setFields(h, &[2]string{text[:split], text[split:]})
	}
}

// separate appends a separator, unless the list in b[from:] is empty.
func separate(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return b
}

// sentFields returns a function that reads back, for an observer, the fields that advertise
// has set for each policy in turn.
func (o *ownOptions) sentFields(h http.Header) func(part) telemetry.Sent {
	policies, limits := last(h[policyField]), last(h[limitField])
	return func(p part) (sent telemetry.Sent) {
		switch {
		case o.headers == None || !p.InForce(&p.Decision):
		case o.headers != IETF:
			sent.Policy, sent.Limit, sent.Reset = last(h[legacyLimit]), last(h[legacyRemaining]), last(h[legacyReset])
		default:
			sent.Policy, policies, _ = strings.Cut(policies, ", ") // no item has a comma within
			if !p.Unknown() {
				sent.Limit, limits, _ = strings.Cut(limits, ", ")
			}
		}
		return sent
	}
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

// addField adds a line to the lines of other limits.
func addField(h http.Header, name string, line []string) {
	if before := h[name]; len(before) > 0 {
		if name == policyField && slices.Contains(before, line[0]) { // the request has passed it
			warnTwice.Log("policy", line[0])
		}
		line = append(before[:len(before):len(before)], line...)
	}
	h[name] = line
}

// advertiseLegacy sets the fields of p, unless a tighter limit has set them before.
func advertiseLegacy(h http.Header, p *part, mode HeadersMode) {
	d := &p.Decision
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

// resetValue returns the seconds until the whole quota is back, or that instant,
// rounded up.
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

// setRetryFields sets Retry-After, rounded up from Retry-After-Ms, and unless the mode is None
// also the latter.
func (o *ownOptions) setRetryFields(h http.Header, values *[2]string, v *verdict) {
	if v.Wait == algo.Forever {
		return
	}
	h[retryAfterField] = values[0:1:1]
	if o.headers == None {
		values[0] = strconv.FormatInt(v.Seconds(), 10)
		return
	}
	var buf [2 * 20]byte
	b := strconv.AppendInt(buf[:0], v.Seconds(), 10)
	split := len(b)
	text := string(strconv.AppendInt(b, v.Milliseconds(), 10))
	values[0], values[1] = text[:split], text[split:]
	h[retryAfterMsField] = values[1:2:2]
}
