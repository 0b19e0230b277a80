package keyfunc

import (
	"net/netip"
)

// ClientIP is the address of the client, read from the connection and, when
// the connecting peer is one of the trusted proxies, from X-Forwarded-For.
//
// Not trusted, the peer is the client, and headers do not matter. Trusted, the
// lines of the header are read from right to left, and the first address that
// is not trusted is the client: everything to its left is what the client
// itself has sent. When all addresses are trusted, or the header is absent,
// the client is the left-most trusted one. When an address cannot be read,
// the key is "~hop:" and the key of the peer: all such requests through one
// proxy share a limit, and no address that the sender made up is used.
//
// The peer is http.Request.RemoteAddr as net/http has set it. A middleware that
// overwrites it from a header has made the decision already, and without these
// rules: leave it out.
//
// With no prefix at all, the peer is always the client. That is right for a
// server that clients reach directly, and behind a proxy it makes one client
// of everybody.
//
// Keys: an IPv4 address as it stands, "203.0.113.7"; IPv6 by its /64,
// "2001:db8:1:2::/64"; 64:ff9b::/96 (NAT64, RFC 6052) as the IPv4 address
// inside; "local" for a Unix socket. IPv4-mapped IPv6 is IPv4, zones are
// dropped. A connection without an address is [ErrNoKey].
//
// ClientIP panics if a prefix is invalid, or if the prefixes hold all of IPv4
// or IPv6. [IPConfig] has the same without panics, and everything else.
func ClientIP(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Trusted: trusted}.HTTP())
}

// ClientIPHeader is [ClientIP] for a proxy that writes another header, such
// as X-Real-IP or CF-Connecting-IP. The header is read as a list of addresses
// without ports, from right to left; "Forwarded" is read as by [Forwarded].
//
// Name a header that the proxy sets on each request. One that it passes on
// from the client unchanged, as many do with headers they do not know, is the
// client's own word. Of X-Forwarded-For nothing is read.
//
// It panics as ClientIP does, and if name is not a header name.
func ClientIPHeader(name string, trusted ...netip.Prefix) HTTP {
	require(name != "", "ClientIPHeader", "the name is empty")
	return must(IPConfig{Header: name, Trusted: trusted}.HTTP())
}

// Forwarded is [ClientIP] over the header of RFC 7239, Forwarded, with its
// quoting, brackets and ports. A hop given as "unknown", by an obfuscated
// name, or not at all, cannot be looked behind and counts as unreadable. So
// does every hop of a line with an error anywhere in it: a quote that a client
// leaves open would otherwise hide what a proxy has added. A client can thus
// put itself into the limit of the unreadable. Of X-Forwarded-For nothing is
// read: the two are never merged.
//
// It panics as ClientIP does.
func Forwarded(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Header: headerForwarded, Trusted: trusted}.HTTP())
}

// TrustedHops is the n-th address of X-Forwarded-For from the right, n from 1
// to 64, for n proxies whose addresses are not known beforehand. With one
// proxy, n is 1.
//
// Every peer is believed. If clients can reach this server around the
// proxies, or n is larger than the number of proxies, a client chooses its
// key; if n is too small, the key is that of a proxy. Prefer [ClientIP] where
// the addresses are known, or IPConfig with Hops and Trusted. A chain shorter
// than n gives "~hop:" and the key of the peer.
//
// It panics if n is out of range.
func TrustedHops(n int) HTTP {
	require(n > 0, "TrustedHops", "the number of proxies must be at least 1")
	return must(IPConfig{Hops: n, TrustAll: true}.HTTP())
}
