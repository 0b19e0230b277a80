package clientip

import (
	"slices"
	"strings"
)

const (
	headerForwarded     = "Forwarded"
	headerXForwardedFor = "X-Forwarded-For"
	headerViewer        = "Cloudfront-Viewer-Address"

	// maxForwarded is the largest total size of Forwarded lines, in bytes.
	maxForwarded = 8 << 10
	// maxHops is the largest number of addresses read. Real chains have fewer
	// than ten.
	maxHops = 64
	// maxAddressLen is the largest size of one address in a list, in bytes,
	// white space included.
	maxAddressLen = 128
	// maxSharedLine is the longest line, in bytes, that a key may be a
	// substring of. A substring keeps the whole line in memory for as long as
	// the key lives.
	maxSharedLine = 64
)

// step is the result of one more line or address.
type step uint8

const (
	trusted   step = iota // continue to the left
	found                 // the client
	malformed             // unreadable: nothing to its left counts
)

// chain reads addresses from the peer towards the client.
type chain struct {
	rules  *Rules
	client Address // the last address reached
	hops   int
	bytes  int // of Forwarded lines
}

// forwardedFor reads the lines of one header from right to left, nearest
// address first, beginning at a trusted peer. Each trusted address vouches for
// the one to its left; the first that is not trusted is the client. When all
// are trusted, the client is the left-most. When hops are counted, the client
// is the address of that number.
//
// It reports false when an address cannot be read, and when the chain is longer
// than maxHops or shorter than the count.
func (r *Rules) forwardedFor(peer Address, lines []string) (Address, bool) {
	c := chain{rules: r, client: peer}
	for _, line := range slices.Backward(lines) {
		switch c.line(line) {
		case found:
			return c.client, true
		case malformed:
			return Address{}, false
		}
	}
	return c.client, r.hops == 0
}

// line reads one line of the header.
func (c *chain) line(line string) step {
	if c.rules.field.header == headerForwarded {
		return c.forwarded(line)
	}
	return c.list(line)
}

// list reads a line of comma-separated addresses. An empty element is
// malformed rather than skipped: a proxy that did not know its client may have
// written it, and everything to its left comes from the client itself.
func (c *chain) list(line string) step {
	parse := ParseEndpoint
	if c.rules.field.header == headerViewer {
		parse = parseViewer
	}
	for rest, more := line, true; more; {
		var text string
		var ok bool
		if rest, text, more, ok = lastElement(rest); !ok {
			return malformed
		}
		a, ok := parse(text)
		if s := c.step(a, ok, line); s != trusted {
			return s
		}
	}
	return trusted
}

// forwarded reads a line of RFC 7239. The line is parsed from its left end,
// since only from there quotes are known to open or close; a line with an
// error anywhere is malformed as a whole.
func (c *chain) forwarded(line string) step {
	if c.bytes += len(line); c.bytes > maxForwarded {
		return malformed
	}
	var nodes [maxHops]string
	n, ok := parseForwarded(line, &nodes)
	if !ok {
		return malformed
	}
	for _, node := range slices.Backward(nodes[:n]) {
		a, ok := parseNode(node)
		if s := c.step(a, ok, line); s != trusted {
			return s
		}
	}
	return trusted
}

// step moves one address further to the left.
func (c *chain) step(a Address, ok bool, line string) step {
	if c.hops++; !ok || c.hops > maxHops {
		return malformed
	}
	if len(line) > maxSharedLine {
		a.text = ""
	}
	c.client = a
	if c.rules.hops > 0 {
		if c.hops == c.rules.hops {
			return found
		}
		return trusted
	}
	if c.rules.trusts(a) {
		return trusted
	}
	return found
}

// lastElement cuts the last element off a list and trims the spaces and tabs
// around it (OWS, RFC 9110 section 5.6.3). It reads at most maxAddressLen bytes
// and reports false when the element is longer.
func lastElement(list string) (rest, element string, more, ok bool) {
	tail := list[max(0, len(list)-maxAddressLen):]
	i := strings.LastIndexByte(tail, ',')
	if i < 0 {
		return "", strings.Trim(tail, " \t"), false, len(tail) == len(list)
	}
	return list[:len(list)-len(tail)+i], strings.Trim(tail[i+1:], " \t"), true, true
}

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

// forwardedElement reads pairs, which may be empty, up to a comma, with which rest
// begins, or to the end of the line.
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

// quotedString reads a quoted-string (RFC 9110 section 5.6.4) and returns its value
// without quotes and backslashes.
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

// quotable reports whether a quoted-string may hold c, escaped or not: every byte
// except control characters other than the tab.
func quotable(c byte) bool { return c == '\t' || (c >= ' ' && c != 0x7f) }

// tokenLen returns the length of the token (RFC 9110 section 5.6.2) at the start of s.
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
