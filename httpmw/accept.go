package httpmw

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// mostAccept is how much of an Accept field is read.
const mostAccept = 1024

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

// mediaRange splits an element of Accept. What cannot be parsed weighs
// nothing.
func mediaRange(s string) (kind string, q float64) {
	kind, params, found := strings.Cut(s, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if !found {
		return kind, 1
	}
	_, values, err := mime.ParseMediaType("a/b;" + params)
	if err != nil {
		return kind, 0
	}
	text, ok := values["q"]
	if !ok {
		return kind, 1
	}
	q, err = strconv.ParseFloat(text, 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return kind, 0
	}
	return kind, q
}
