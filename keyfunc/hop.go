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

// nat64 is the well-known prefix of RFC 6052: its addresses carry an IPv4
// address in the last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// hop is one station between the client and this server.
type hop struct {
	addr netip.Addr // unmapped, without zone; the zero Addr is a Unix socket
	text string     // the key of addr, where it is known without writing it anew
}

// local is the hop at the other end of a Unix socket.
var local = hop{text: localKey}

func (h hop) isLocal() bool { return !h.addr.IsValid() }

// newHop brings an address into the one form used here: ::ffff:192.0.2.1
// becomes 192.0.2.1, a zone is dropped. It reports false for the unspecified
// addresses, which name no host: 0.0.0.0, ::, and either inside another form.
func newHop(a netip.Addr) (hop, bool) {
	a = a.WithZone("").Unmap()
	if !a.IsValid() || a.IsUnspecified() {
		return hop{}, false
	}
	if nat64.Contains(a) && embedded(a).IsUnspecified() {
		return hop{}, false
	}
	return hop{addr: a}, true
}

// embedded is the IPv4 address inside a NAT64 address.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// parseAddr reads an address as net/netip does: no leading zeros, no
// shortened IPv4, nothing around it. So a dotted IPv4 address has exactly one
// text, and that text is its key. A zone is cut off before parsing, because
// net/netip keeps each zone it sees in a table of the process.
func parseAddr(s string) (hop, bool) {
	host, zone, zoned := strings.Cut(s, "%")
	if len(host) > maxAddrText || (zoned && zone == "") {
		return hop{}, false
	}
	a, err := netip.ParseAddr(host)
	if err != nil || (zoned && a.Is4()) {
		return hop{}, false
	}
	h, ok := newHop(a)
	if ok && a.Is4() {
		h.text = host
	}
	return h, ok
}

// parseEndpoint reads an address that may have a port: 192.0.2.1,
// 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. The same form
// serves for http.Request.RemoteAddr and for X-Forwarded-For, which has no
// standard and to which some load balancers append the port.
func parseEndpoint(s string) (hop, bool) {
	if strings.HasPrefix(s, "[") {
		return parseBracketed(s, isPort)
	}
	first := strings.IndexByte(s, ':')
	if first < 0 || strings.IndexByte(s[first+1:], ':') >= 0 {
		return parseAddr(s)
	}
	if !isPort(s[first+1:]) {
		return hop{}, false
	}
	return parseAddr(s[:first])
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
