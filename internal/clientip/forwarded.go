package clientip

import (
	"strings"
)

const (
	headerForwarded     = "Forwarded"
	headerXForwardedFor = "X-Forwarded-For"
	headerViewer        = "Cloudfront-Viewer-Address"

	// maxForwarded is the largest total size of Forwarded lines, in bytes.
	maxForwarded = 8 << 10
)

// parseForwarded reads one line of RFC 7239 section 4 and puts the "for" node
// of each element into nodes, unquoted, "" where an element has none. It
// returns their number, and false when any part of the line is outside the
// grammar, an element has two "for", or there are more than maxHops elements.
// Spaces and tabs are allowed around commas and semicolons.
func parseForwarded(line string, nodes *[maxHops]string) (int, bool) {
	for n := 0; n < maxHops; n++ {
		node, rest, ok := forwardedElement(line)
		if !ok {
			return 0, false
		}
		nodes[n] = node
		if rest == "" {
			return n + 1, true
		}
		line = rest[1:]
	}
	return 0, false
}

// forwardedElement reads pairs up to a comma, with which rest begins, or to
// the end of the line. The grammar lets pairs be empty.
func forwardedElement(s string) (node, rest string, ok bool) {
	seen := false
	for {
		s = strings.TrimLeft(s, " \t")
		if s != "" && s[0] != ';' && s[0] != ',' {
			name, value, after, ok := forwardedPair(s)
			if !ok {
				return "", "", false
			}
			if strings.EqualFold(name, "for") {
				if seen {
					return "", "", false
				}
				seen, node = true, value
			}
			s = strings.TrimLeft(after, " \t")
		}
		switch {
		case s == "" || s[0] == ',':
			return node, s, true
		case s[0] != ';':
			return "", "", false
		}
		s = s[1:]
	}
}

// forwardedPair reads token "=" ( token / quoted-string ).
func forwardedPair(s string) (name, value, rest string, ok bool) {
	i := tokenLen(s)
	if i == 0 || i == len(s) || s[i] != '=' {
		return "", "", "", false
	}
	name, s = s[:i], s[i+1:]
	if strings.HasPrefix(s, `"`) {
		value, rest, ok = quotedString(s)
		return name, value, rest, ok
	}
	i = tokenLen(s)
	return name, s[:i], s[i:], i > 0
}

// quotedString reads a quoted-string (RFC 9110 section 5.6.4) and removes the
// quotes and backslashes.
func quotedString(s string) (value, rest string, ok bool) {
	var b strings.Builder
	from := 1
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if b.Len() == 0 {
				return s[from:i], s[i+1:], true
			}
			b.WriteString(s[from:i])
			return b.String(), s[i+1:], true
		case c == '\\':
			b.WriteString(s[from:i])
			i++
			from = i
			if i == len(s) || !quotable(s[i]) {
				return "", "", false
			}
		case !quotable(c):
			return "", "", false
		}
	}
	return "", "", false
}

// quotable reports whether c is allowed in a quoted-string, escaped or not:
// anything but control characters other than the tab.
func quotable(c byte) bool { return c == '\t' || (c >= ' ' && c != 0x7f) }

// tokenLen is the length of the token (RFC 9110 section 5.6.2) at the start of s.
func tokenLen(s string) int {
	i := 0
	for i < len(s) && isTokenChar(s[i]) {
		i++
	}
	return i
}

func isTokenChar(c byte) bool {
	return isAlphanumeric(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// parseNode reads a node (RFC 7239 section 6): IPv4, or IPv6 in brackets,
// with or without a port. "unknown" and names that begin with an underscore
// hide the address on purpose, so they are unreadable.
func parseNode(s string) (Address, bool) {
	if strings.HasPrefix(s, "[") {
		return parseBracketed(s, isNodePort)
	}
	name, port, found := strings.Cut(s, ":")
	if found && !isNodePort(port) {
		return Address{}, false
	}
	return parseAddress(name)
}

// isNodePort reports whether s is a port, or an obfuscated one: an underscore
// and at least one letter, digit, dot, underscore or hyphen.
func isNodePort(s string) bool {
	if len(s) < 2 || s[0] != '_' {
		return IsPort(s)
	}
	for i := 1; i < len(s); i++ {
		if !isAlphanumeric(s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-' {
			return false
		}
	}
	return true
}
