package keyfunc

import (
	"slices"
	"strings"
)

const (
	// maxHops is the most hops walked. Real chains have fewer than ten.
	maxHops = 64
	// maxHopText is the most bytes of one hop, white space included.
	maxHopText = 128
	// maxPinned is the longest line a key may be a part of. A part of a
	// string keeps all of it in memory for as long as the key lives.
	maxPinned = 64
)

// verdict is what one more line or hop has led to.
type verdict uint8

const (
	onward    verdict = iota // believed: look further left
	found                    // the client
	malformed                // unreadable: nothing left of it counts
)

// chain is a walk from the peer towards the client.
type chain struct {
	rules  *ipRules
	client hop // the last hop reached
	hops   int
	bytes  int // of Forwarded lines
}

// walk goes through the lines of one header from right to left, the order in
// which the hops are nearer to this server, beginning at a peer that is
// believed. Each hop that is believed vouches for the one to its left; the
// first that is not is the client. When all are believed it is the left-most.
// When hops are counted it is the hop of that number.
//
// It reports false when a hop cannot be read, when the chain is longer than
// maxHops, or shorter than the count.
func (r *ipRules) walk(peer hop, lines []string) (hop, bool) {
	c := chain{rules: r, client: peer}
	for _, line := range slices.Backward(lines) {
		switch c.line(line) {
		case found:
			return c.client, true
		case malformed:
			return hop{}, false
		}
	}
	return c.client, r.hops == 0
}

// line walks one line of the header.
func (c *chain) line(line string) verdict {
	if c.rules.header == headerForwarded {
		return c.forwarded(line)
	}
	return c.list(line)
}

// list walks a line of addresses with commas between them. An empty element
// is malformed rather than skipped: it may be what a proxy wrote that did not
// know its client, and what stands left of it is then the client's own word.
func (c *chain) list(line string) verdict {
	parse := parseAddr
	if c.rules.header == headerXForwardedFor {
		parse = parseEndpoint
	}
	for rest, more := line, true; more; {
		var text string
		var ok bool
		if rest, text, more, ok = lastElement(rest); !ok {
			return malformed
		}
		h, ok := parse(text)
		if v := c.step(h, ok, line); v != onward {
			return v
		}
	}
	return onward
}

// forwarded walks a line of RFC 7239. The line is read from its left end,
// since only from there are quotes known to open or close; a line with an
// error anywhere is malformed as a whole.
func (c *chain) forwarded(line string) verdict {
	if c.bytes += len(line); c.bytes > maxForwarded {
		return malformed
	}
	var nodes [maxHops]string
	n, ok := parseForwarded(line, &nodes)
	if !ok {
		return malformed
	}
	for _, node := range slices.Backward(nodes[:n]) {
		h, ok := parseNode(node)
		if v := c.step(h, ok, line); v != onward {
			return v
		}
	}
	return onward
}

// step takes one hop further to the left.
func (c *chain) step(h hop, ok bool, line string) verdict {
	if c.hops++; !ok || c.hops > maxHops {
		return malformed
	}
	if len(line) > maxPinned {
		h.text = ""
	}
	c.client = h
	if c.rules.hops > 0 {
		if c.hops == c.rules.hops {
			return found
		}
		return onward
	}
	if c.rules.believes(h) {
		return onward
	}
	return found
}

// lastElement cuts the last element off a list and trims the spaces and tabs
// around it (OWS, RFC 9110 section 5.6.3). It looks at no more than
// maxHopText bytes and reports false when the element is longer.
func lastElement(list string) (rest, element string, more, ok bool) {
	tail := list[max(0, len(list)-maxHopText):]
	i := strings.LastIndexByte(tail, ',')
	if i < 0 {
		return "", strings.Trim(tail, " \t"), false, len(tail) == len(list)
	}
	return list[:len(list)-len(tail)+i], strings.Trim(tail[i+1:], " \t"), true, true
}
