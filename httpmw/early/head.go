package early

import (
	"bytes"
	"net/http"
	"strings"
)

// deniable reports whether b is one whole request that may be answered here.
func (l *Listener) deniable(b []byte) bool {
	line, rest, ok := bytes.Cut(b, crlf)
	if !ok {
		return false
	}
	method, target, ok := bytes.Cut(line, space)
	if !ok || !isBodyless(method) {
		return false
	}
	target, version, _ := bytes.Cut(target, space)
	return string(version) == "HTTP/1.1" && !l.isExempt(target) && isPlainHead(rest)
}

// isBodyless reports whether requests with the method usually have no body.
func isBodyless(method []byte) bool {
	switch string(method) {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}

// isExempt reports whether a request must reach the server. A target that is not
// a path as it is written might mean any path.
func (l *Listener) isExempt(target []byte) bool {
	path, _, _ := bytes.Cut(target, question)
	if len(path) == 0 || path[0] != '/' || bytes.ContainsAny(path, "%#\\") ||
		bytes.Contains(path, []byte("//")) || bytes.Contains(path, []byte("/.")) {
		return true
	}
	for _, c := range target {
		if c <= ' ' || c >= 0x7f {
			return true
		}
	}
	for _, e := range l.exempt {
		if strings.HasSuffix(e, "/") && strings.HasPrefix(string(path)+"/", e) || string(path) == e {
			return true
		}
	}
	return false
}

var crlf, space, question = []byte("\r\n"), []byte(" "), []byte("?")

// isPlainHead reports whether b is the fields and the end of a head, nothing
// after it, and none of the fields asks for more than an answer.
func isPlainHead(b []byte) bool {
	hosts := 0
	for {
		line, rest, ok := bytes.Cut(b, crlf)
		if !ok {
			return false
		}
		if len(line) == 0 {
			return len(rest) == 0 && hosts == 1
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !isToken(name) || !isPlainValue(value) || needsServer(name, value) {
			return false
		}
		if equalFold(name, "host") {
			hosts++
		}
		b = rest
	}
}

// needsServer reports whether a field means something for the connection or
// announces a body.
func needsServer(name, value []byte) bool {
	for _, field := range []string{"content-length", "transfer-encoding", "upgrade", "expect", "trailer", "http2-settings"} {
		if equalFold(name, field) {
			return true
		}
	}
	return equalFold(name, "connection") && !equalFold(bytes.TrimSpace(value), "keep-alive")
}

func equalFold(b []byte, lower string) bool {
	return len(b) == len(lower) && strings.EqualFold(string(b), lower)
}

// isToken reports whether b is a plain field name.
func isToken(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(b) > 0
}

// isPlainValue reports whether b has no control characters.
func isPlainValue(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
