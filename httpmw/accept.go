package httpmw

import (
	"net/http"
	"strconv"
	"strings"
)

// mostAccept is how long an Accept field may be to be read: a denial must not
// cost more because the client sends more.
const mostAccept = 512

// prefersText reports whether the client would rather have text than JSON
// (RFC 9110 section 12.5.1). Browsers, which ask for text/html, do. Without
// preference it is JSON.
func prefersText(r *http.Request) bool {
	lines := r.Header["Accept"]
	if len(lines) == 0 || lines[0] == "*/*" || len(lines[0]) > mostAccept {
		return false
	}
	var text, json, any quality
	for part := range strings.SplitSeq(lines[0], ",") {
		kind, q := mediaRange(part)
		switch kind {
		case "text/plain", "text/html", "text/*":
			text.raise(q)
		case problemType, "application/json", "application/*":
			json.raise(q)
		case "*/*":
			any.raise(q)
		}
	}
	return text.or(any) > json.or(any)
}

// quality is the weight of a media type, and whether it was named at all.
type quality struct {
	q     float64
	named bool
}

func (a *quality) raise(q float64) { a.q, a.named = max(a.q, q), true }

func (a quality) or(other quality) float64 {
	if a.named {
		return a.q
	}
	return other.q
}

// mediaRange splits an element of Accept. A weight that cannot be parsed is 0.
func mediaRange(s string) (kind string, q float64) {
	kind, params, _ := strings.Cut(s, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	for param := range strings.SplitSeq(params, ";") {
		param = strings.TrimSpace(param)
		if len(param) < 2 || param[0]|0x20 != 'q' || param[1] != '=' {
			continue
		}
		q, err := strconv.ParseFloat(param[2:], 64)
		if err != nil || !(q >= 0 && q <= 1) {
			return kind, 0
		}
		return kind, q
	}
	return kind, 1
}
