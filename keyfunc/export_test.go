package keyfunc

// MaxHops is the longest chain walked.
const MaxHops = maxHops

// ParseForwarded shows the parser of RFC 7239 to the tests.
func ParseForwarded(line string) ([]string, bool) {
	var nodes [maxHops]string
	n, ok := parseForwarded(line, &nodes)
	return append([]string(nil), nodes[:n]...), ok
}

// ResetWarnings makes the warnings appear again.
func ResetWarnings() {
	warnIgnored.logged.Store(false)
	warnTrustsAll.logged.Store(false)
}
