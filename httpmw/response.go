package httpmw

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// Denial describes a refused request to a handler given to [WithDenied].
type Denial struct {
	// Status is 429 if the client has used up its quota, 503 if the server
	// lacks capacity or could not decide, and 401 (see [DenyWith]) if the request
	// has no key.
	Status int
	// Policy is the name of the limit, "" if the request could not be decided.
	Policy string
	// Decision is the limiter's decision.
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

// refusal is an answer to a request that must not go on.
type refusal struct {
	status   int
	policy   string        // the name of the first limit that it violates
	retry    int64         // seconds of Retry-After; 0: never
	wait     time.Duration // the same, exactly
	body     string        // problem details
	banned   bool
	protocol protocol
	pushback int32            // of gRPC
	quota    []quotaViolation // of gRPC
}

// quotaViolation is a limit that had no room, and the class of the key.
type quotaViolation struct{ policy, class string }

// prepare finds out which protocol the answer speaks.
func (m *middleware) prepare(f *refusal, r *http.Request) {
	h := r.Header
	if m.denied != nil || len(h["Content-Type"]) == 0 && len(h["Connect-Protocol-Version"]) == 0 && (r.URL == nil || r.URL.RawQuery == "") {
		return // plain HTTP
	}
	if f.protocol = protocolOf(r); f.protocol.kind == grpc {
		f.pushback = f.pushbackFor(r)
	}
}

// writeRefusal writes the answer. The RateLimit fields are set already. Nothing of
// the request and no error's text is in it. (The decision is a parameter of its
// own because it would escape within the struct, and the lease with it.)
func (m *middleware) writeRefusal(w http.ResponseWriter, r *http.Request, f *refusal, decision *algo.Decision) {
	markRefused(w)
	h := w.Header()
	delete(h, "Content-Length")
	values := &[5]string{"no-store", "nosniff", problemType}
	h["Cache-Control"] = values[0:1:1]
	h["X-Content-Type-Options"] = values[1:2:2]
	if f.retry > 0 {
		m.setRetryFields(h, (*[2]string)(values[3:]), f)
	}
	if m.denied != nil {
		d := &Denial{Status: f.status, Policy: f.policy, Decision: *decision}
		inner := r.WithContext(context.WithValue(r.Context(), denialKey{}, d))
		defer giveBack(r, inner)
		m.denied.ServeHTTP(w, inner)
		return
	}
	if f.protocol.kind != plainHTTP {
		f.refuseRPC(w, r)
		return
	}
	body := f.body
	if prefersText(r) {
		values[2], body = plainType, f.title()+".\n"
	}
	h["Content-Type"] = values[2:3:3]
	w.WriteHeader(f.status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // best effort: the client may be gone
	}
}

// setRetryFields sets Retry-After, and Retry-After-Ms unless the mode of the fields is None.
func (m *middleware) setRetryFields(h http.Header, values *[2]string, f *refusal) {
	h[retryAfterField] = values[0:1:1]
	if m.headers == None {
		values[0] = strconv.FormatInt(f.retry, 10)
		return
	}
	var buf [2 * 20]byte
	b := strconv.AppendInt(buf[:0], f.retry, 10)
	split := len(b)
	text := string(strconv.AppendInt(b, admission.Milliseconds(f.wait), 10))
	values[0], values[1] = text[:split], text[split:]
	h[retryAfterMsField] = values[1:2:2]
}

// setWait sets the exact wait, spread so that clients do not come back all at once, and
// Retry-After: the milliseconds of the wait in seconds, rounded up, and never below the t
// of RateLimit. Nothing is set if waiting does not help.
func (f *refusal) setWait(wait, reset time.Duration) {
	if wait != algo.Forever {
		f.wait = admission.Jitter(wait, reset, algo.Forever, rand.Float64())
		f.retry = admission.Seconds(time.Duration(admission.Milliseconds(f.wait)) * time.Millisecond)
	}
}

// The types and titles of draft-ietf-httpapi-ratelimit-headers.
const (
	quotaType     = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaTitle    = "Request cannot be satisfied as assigned quota has been exceeded"
	capacityType  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	capacityTitle = "Request cannot be satisfied due to temporary server capacity constraints"

	// Nothing is registered for these: a request without a key has a status of its
	// own (see DenyWith), a ban the status of a quota.
	noType       = "about:blank"
	missingTitle = "The request lacks the identity that its limit counts by"
	bannedTitle  = "The caller is banned"

	problemType = "application/problem+json"
	plainType   = "text/plain; charset=utf-8"
)

func titleOf(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return quotaTitle
	case http.StatusServiceUnavailable:
		return capacityTitle
	}
	return missingTitle
}

// title is the short text of the refusal.
func (f *refusal) title() string {
	if f.banned {
		return bannedTitle
	}
	return titleOf(f.status)
}

// problemBody renders problem details (RFC 9457). The names of policies need no
// escaping; nothing of the request is in it.
func problemBody(status int, violated ...string) string {
	kind := noType
	switch status {
	case http.StatusTooManyRequests:
		kind = quotaType
	case http.StatusServiceUnavailable:
		kind = capacityType
	}
	return renderProblem(kind, titleOf(status), status, violated)
}

// ban makes f the answer to a banned caller.
func (f *refusal) ban(violated ...string) {
	f.banned, f.body = true, renderProblem(noType, bannedTitle, f.status, violated)
}

func renderProblem(kind, title string, status int, violated []string) string {
	b := []byte(`{"type":"` + kind + `","title":"` + title + `","status":`)
	b = strconv.AppendInt(b, int64(status), 10)
	if len(violated) > 0 {
		b = append(b, `,"violated-policies":["`+strings.Join(violated, `","`)+`"]`...)
	}
	return string(append(b, "}\n"...))
}

// failedBody answers requests that could not be decided.
var failedBody = problemBody(http.StatusServiceUnavailable)

// maxAccept is the longest Accept field that is read, all lines together: a denial must not cost
// more because the client sends more.
const maxAccept = 512

// prefersText reports whether the client prefers text to JSON (RFC 9110 section
// 12.5.1). Browsers, which accept text/html, do. The default is JSON.
func prefersText(r *http.Request) bool {
	lines := r.Header["Accept"]
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "*/*" {
		return false
	}
	accept := lines[0]
	for _, line := range lines[1:] { // RFC 9110 section 5.3
		if len(accept) > maxAccept {
			break
		}
		accept += "," + line
	}
	if len(accept) > maxAccept {
		return false
	}
	var text, json, other quality
	for part := range strings.SplitSeq(accept, ",") {
		kind, q := mediaRange(part)
		switch kind {
		case "text/plain", "text/html", "text/*":
			text.raise(q)
		case problemType, "application/json", "application/*":
			json.raise(q)
		case "*/*":
			other.raise(q)
		}
	}
	return text.or(other) > json.or(other)
}

// quality is the weight of a media type in thousandths, if it was named.
type quality struct {
	q     int
	named bool
}

func (a *quality) raise(q int) { a.q, a.named = max(a.q, q), true }

func (a quality) or(other quality) int {
	if a.named {
		return a.q
	}
	return other.q
}

// mediaRange splits an element of Accept. A malformed weight is 0.
func mediaRange(s string) (kind string, q int) {
	kind, params, _ := strings.Cut(s, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	for param := range strings.SplitSeq(params, ";") {
		param = strings.TrimSpace(param)
		if len(param) >= 2 && param[0]|0x20 == 'q' && param[1] == '=' {
			return kind, weight(param[2:])
		}
	}
	return kind, 1000
}

// weight parses a weight from 0 to 1, with at most three decimals (RFC 9110
// section 12.4.2). strconv.ParseFloat would be a tenth of this package's code.
func weight(s string) int {
	whole, decimals, _ := strings.Cut(s, ".")
	if len(whole) != 1 || len(decimals) > 3 {
		return 0
	}
	q := 0
	for _, c := range []byte(whole + (decimals + "000")[:3]) {
		if c < '0' || '9' < c {
			return 0
		}
		q = q*10 + int(c-'0')
	}
	if q > 1000 {
		return 0
	}
	return q
}
