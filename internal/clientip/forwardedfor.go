package clientip

import (
	"slices"
	"strings"
)

const (
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
	if c.rules.Header == headerForwarded {
		return c.forwarded(line)
	}
	return c.list(line)
}

// list reads a line of comma-separated addresses. An empty element is
// malformed rather than skipped: a proxy that did not know its client may have
// written it, and everything to its left comes from the client itself.
func (c *chain) list(line string) step {
	parse := ParseEndpoint
	if c.rules.Header == headerViewer {
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
	if c.rules.Trusts(a) {
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
