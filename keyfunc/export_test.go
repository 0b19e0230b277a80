package keyfunc

import "net/netip"

// MaxHops is the longest chain walked.
const MaxHops = maxHops

// ParseForwarded shows the parser of RFC 7239 to the tests.
func ParseForwarded(line string) ([]string, bool) {
	var nodes [maxHops]string
	n, ok := parseForwarded(line, &nodes)
	return append([]string(nil), nodes[:n]...), ok
}

// ParseAddr shows the parser of addresses to the tests: the address, and the
// key text if it is known.
func ParseAddr(s string) (a netip.Addr, text string, ok bool) {
	h, ok := parseAddr(s)
	return h.addr(), h.text, ok
}

// ResetWarnings makes the warnings appear again.
func ResetWarnings() {
	warnIgnored.logged.Store(false)
	warnTrustsAll.logged.Store(false)
}
