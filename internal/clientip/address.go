package clientip

import (
	"net"
	"net/netip"
	"strings"
)

// unixKey is the key of every client on a Unix socket.
const unixKey = "local"

// maxAddressText is the length of the longest text of an address without zone:
// six groups of IPv6 and an embedded IPv4 address.
const maxAddressText = 45

// Address is one node on the path from the client to this server.
type Address struct {
	ip          // the zero ip is a Unix socket
	text string // the key of the address, where it is known without formatting it
}

// Unix is the peer at the other end of a Unix socket.
var Unix = Address{text: unixKey}

func (a Address) isUnix() bool { return a.ip == ip{} }

// IsUnix reports whether addr is the address of a Unix socket.
func IsUnix(addr net.Addr) bool {
	switch addr.(type) {
	case nil, *net.TCPAddr:
		return false
	case *net.UnixAddr:
		return true
	}
	return strings.HasPrefix(addr.Network(), "unix")
}

// FromNet is the address of the other end of a connection. It reports false
// for a connection without an address.
func FromNet(addr net.Addr) (Address, bool) {
	if addr == nil {
		return Address{}, false
	}
	if IsUnix(addr) {
		return Unix, true
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp != nil {
		parsed, ok := netip.AddrFromSlice(tcp.IP)
		a := Address{ip: ipOf(parsed)}
		return a, ok && !a.unspecified()
	}
	return ParseEndpoint(addr.String())
}

// parseAddress reads an address as net/netip does: no leading zeros, no
// shortened IPv4, no surrounding space. So a dotted IPv4 address has exactly
// one text, and that text is its key. A zone is cut off before parsing, because
// net/netip keeps each zone it sees in a table of the process. It reports
// false for unspecified addresses.
func parseAddress(s string) (Address, bool) {
	if a, ok := parseDotted(s); ok {
		return a, true
	}
	host, zone, zoned := strings.Cut(s, "%")
	if len(host) > maxAddressText || (zoned && zone == "") {
		return Address{}, false
	}
	parsed, err := netip.ParseAddr(host)
	if err != nil || (zoned && parsed.Is4()) {
		return Address{}, false
	}
	a := Address{ip: ipOf(parsed)}
	if parsed.Is4() {
		a.text = host
	}
	return a, !a.unspecified()
}

// parseDotted reads a dotted IPv4 address, in a third of the time that
// net/netip takes (BenchmarkHTTP). The two must agree: net/netip decides all
// other texts.
func parseDotted(s string) (Address, bool) {
	var v, field uint32
	dots, digits := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			if digits > 0 && field == 0 {
				return Address{}, false
			}
			field = field*10 + uint32(c-'0')
			if digits++; field > 255 {
				return Address{}, false
			}
		case c == '.' && digits > 0 && dots < 3:
			v = v<<8 | field
			dots, digits, field = dots+1, 0, 0
		default:
			return Address{}, false
		}
	}
	v = v<<8 | field
	return Address{ip: ip4(v), text: s}, dots == 3 && digits > 0 && v != 0
}

// ParseEndpoint reads an address that may have a port: 192.0.2.1,
// 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. The same form
// serves for http.Request.RemoteAddr and for X-Forwarded-For, which has no
// standard and to which some load balancers append the port.
func ParseEndpoint(s string) (Address, bool) {
	if strings.HasPrefix(s, "[") {
		return parseBracketed(s, IsPort)
	}
	if host, port, found := strings.Cut(s, ":"); found && IsPort(port) {
		return parseAddress(host)
	}
	return parseAddress(s)
}

// parseBracketed reads [IPv6] and [IPv6]:port.
func parseBracketed(s string, port func(string) bool) (Address, bool) {
	host, rest, closed := strings.Cut(s[1:], "]")
	if !closed || !strings.Contains(host, ":") {
		return Address{}, false
	}
	if rest != "" && (rest[0] != ':' || !port(rest[1:])) {
		return Address{}, false
	}
	return parseAddress(host)
}

// IsPort reports whether s is a decimal port, 0 to 65535, of 1 to 5 digits.
func IsPort(s string) bool {
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
