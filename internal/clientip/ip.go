package clientip

import (
	"encoding/binary"
	"net/netip"
)

// ip is an address as two integers, IPv4 as IPv4-mapped IPv6. So both
// spellings of an IPv4 address are one value, there is no zone, and comparing
// and masking need no branch on the family. net/netip parses and formats the
// texts.
type ip struct{ hi, lo uint64 }

const (
	// mappedPrefix is lo>>32 in ::ffff:0:0/96, where hi is 0.
	mappedPrefix = 0xffff
	// nat64Prefix is hi in 64:ff9b::/96 (RFC 6052), where lo>>32 is 0.
	nat64Prefix = 0x0064_ff9b_0000_0000
)

// ipOf drops the zone.
func ipOf(a netip.Addr) ip {
	b := a.As16()
	return ip{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func ip4(v uint32) ip { return ip{0, mappedPrefix<<32 | uint64(v)} }

// addr is the address for net/netip, IPv4 where it is IPv4.
func (a ip) addr() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], a.hi)
	binary.BigEndian.PutUint64(b[8:], a.lo)
	return netip.AddrFrom16(b).Unmap()
}

func (a ip) is4() bool { return a.hi == 0 && a.lo>>32 == mappedPrefix }

func (a ip) isNAT64() bool { return a.hi == nat64Prefix && a.lo>>32 == 0 }

// embedded is the IPv4 address in the last four bytes.
func (a ip) embedded() ip { return ip4(uint32(a.lo)) }

// unspecified reports whether a is 0.0.0.0 or ::, or NAT64 of 0.0.0.0.
func (a ip) unspecified() bool {
	return a == ip{} || (uint32(a.lo) == 0 && (a.is4() || a.isNAT64()))
}

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
