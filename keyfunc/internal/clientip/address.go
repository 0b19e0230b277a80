package clientip

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"

	"github.com/sluice-go/sluice/internal/keytext"
)

// maxAddressText is the length of the longest text of an address without zone:
// six groups of IPv6 and an embedded IPv4 address.
const maxAddressText = 45

// Address is one node on the path from the client to this server.
type Address struct {
	ip          // the zero ip is a Unix socket
	text string // the key of the address, where it is known without formatting it
}

// Unix is the peer at the other end of a Unix socket.
var Unix = Address{text: keytext.Unix.Key()}

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
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp != nil {
		parsed, ok := netip.AddrFromSlice(tcp.IP)
		a := Address{ip: ipOf(parsed)}
		return a, ok && !a.unspecified()
	}
	switch {
	case addr == nil:
		return Address{}, false
	case IsUnix(addr):
		return Unix, true
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
	for i := range len(s) {
		if digit := uint32(s[i]) - '0'; digit <= 9 {
			if field = field*10 + digit; field > 255 || field < 10 && digits > 0 {
				return Address{}, false // too large, or with a leading zero
			}
			digits++
		} else if s[i] == '.' && digits > 0 && dots < 3 {
			v = v<<8 | field
			dots, digits, field = dots+1, 0, 0
		} else {
			return Address{}, false
		}
	}
	v = v<<8 | field
	return Address{ip: ip4(v), text: s}, dots == 3 && digits > 0 && v != 0
}

// ParseEndpoint reads an address that may have a port: 192.0.2.1,
// 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. The same form
// serves for http.Request.RemoteAddr and for headers without a standard, in which
// some load balancers append the port.
func ParseEndpoint(s string) (Address, bool) {
	if strings.HasPrefix(s, "[") {
		return parseBracketed(s, IsPort)
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && IsPort(s[i+1:]) {
		return parseAddress(s[:i])
	}
	return parseAddress(s)
}

// parseViewer reads an address of CloudFront-Viewer-Address: a port always follows, and
// IPv6 has no brackets, so its last group would be taken for a part of the address.
func parseViewer(s string) (Address, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || !IsPort(s[i+1:]) || strings.HasPrefix(s, "[") {
		return ParseEndpoint(s)
	}
	return parseAddress(s[:i])
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
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return false
		}
		n = n*10 + int(digit)
	}
	return n <= 65535
}

// ip is an address as two integers, IPv4 as IPv4-mapped IPv6. So both
// spellings of an IPv4 address are one value, there is no zone, and comparing
// and masking need no branch on the family. net/netip parses and formats the
// texts.
type ip struct{ hi, lo uint64 }

// mappedPrefix is lo>>32 in ::ffff:0:0/96, where hi is 0.
const mappedPrefix = 0xffff

// ipOf drops the zone.
func ipOf(a netip.Addr) ip {
	b := a.As16()
	return ip{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func ip4(v uint32) ip { return ip{0, mappedPrefix<<32 | uint64(v)} }

func (a ip) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	return b
}

// addr is the address for net/netip, IPv4 where it is IPv4.
func (a ip) addr() netip.Addr { return netip.AddrFrom16(a.bytes()).Unmap() }

func (a ip) is4() bool { return a.hi == 0 && a.lo>>32 == mappedPrefix }

// unspecified reports whether a is 0.0.0.0 or ::.
func (a ip) unspecified() bool { return a == ip{} || a == ip4(0) }

// mask keeps the first bits, 0 to 128.
func (a ip) mask(bits int) ip {
	return ip{a.hi & (^uint64(0) << max(64-bits, 0)), a.lo & (^uint64(0) << min(128-bits, 64))}
}

// last is the last address that shares the first bits with a.
func (a ip) last(bits int) ip {
	m := ip{^uint64(0), ^uint64(0)}.mask(bits)
	return ip{a.hi | ^m.hi, a.lo | ^m.lo}
}

// next is the address after a; after the last one comes ::.
func (a ip) next() ip {
	a.lo++
	if a.lo == 0 {
		a.hi++
	}
	return a
}

func (a ip) less(b ip) bool {
	return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo)
}

// slot spreads addresses over n slots, with the constants of SplitMix64.
func (a ip) slot(n uint64) uint64 {
	x := a.hi*0x9e3779b97f4a7c15 ^ a.lo
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x ^ x>>31) % n
}
