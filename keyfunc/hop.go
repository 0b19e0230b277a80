package keyfunc

import (
	"net/netip"
	"strings"
)

// localKey is the key of whoever connects through a Unix socket.
const localKey = "local"

// maxAddrText is the length of the longest text of an address without zone:
// six groups of IPv6 and an embedded IPv4 address.
const maxAddrText = 45

// hop is one station between the client and this server.
type hop struct {
	ip          // the zero ip is a Unix socket
	text string // the key of the address, where it is known without writing it anew
}

// local is the hop at the other end of a Unix socket.
var local = hop{text: localKey}

func (h hop) isLocal() bool { return h.ip == ip{} }

// parseAddr reads an address as net/netip does: no leading zeros, no
// shortened IPv4, nothing around it. So a dotted IPv4 address has exactly one
// text, and that text is its key. A zone is cut off before parsing, because
// net/netip keeps each zone it sees in a table of the process. It reports
// false for addresses that name no host.
func parseAddr(s string) (hop, bool) {
	if h, ok := parseDotted(s); ok {
		return h, true
	}
	host, zone, zoned := strings.Cut(s, "%")
	if len(host) > maxAddrText || (zoned && zone == "") {
		return hop{}, false
	}
	a, err := netip.ParseAddr(host)
	if err != nil || (zoned && a.Is4()) {
		return hop{}, false
	}
	h := hop{ip: ipOf(a)}
	if a.Is4() {
		h.text = host
	}
	return h, !h.namesNoHost()
}

// parseDotted reads a dotted IPv4 address. It takes a third of the time of
// net/netip, with which it must agree; what it does not take, net/netip
// decides.
func parseDotted(s string) (hop, bool) {
	var v, field uint32
	dots, digits := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			if digits > 0 && field == 0 {
				return hop{}, false
			}
			field = field*10 + uint32(c-'0')
			if digits++; field > 255 {
				return hop{}, false
			}
		case c == '.' && digits > 0 && dots < 3:
			v = v<<8 | field
			dots, digits, field = dots+1, 0, 0
		default:
			return hop{}, false
		}
	}
	v = v<<8 | field
	return hop{ip: ip4(v), text: s}, dots == 3 && digits > 0 && v != 0
}

// parseEndpoint reads an address that may have a port: 192.0.2.1,
// 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. The same form
// serves for http.Request.RemoteAddr and for X-Forwarded-For, which has no
// standard and to which some load balancers append the port.
func parseEndpoint(s string) (hop, bool) {
	if strings.HasPrefix(s, "[") {
		return parseBracketed(s, isPort)
	}
	if host, port, found := strings.Cut(s, ":"); found && isPort(port) {
		return parseAddr(host)
	}
	return parseAddr(s)
}

// parseBracketed reads [IPv6] and [IPv6]:port.
func parseBracketed(s string, port func(string) bool) (hop, bool) {
	host, rest, closed := strings.Cut(s[1:], "]")
	if !closed || !strings.Contains(host, ":") {
		return hop{}, false
	}
	if rest != "" && (rest[0] != ':' || !port(rest[1:])) {
		return hop{}, false
	}
	return parseAddr(host)
}

// isPort reports whether s is a decimal port, 0 to 65535, of 1 to 5 digits.
func isPort(s string) bool {
	if len(s) < 1 || len(s) > 5 {
		return false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n <= 65535
}
