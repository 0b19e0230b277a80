package keyfunc

import (
	"net/netip"
)

// ClientIP is the address of the client, read from the connection and, when
// the connecting peer is one of the trusted proxies, from X-Forwarded-For.
//
//   - The peer is not trusted: it is the client, and headers do not matter.
//   - The peer is trusted: the lines of the header are read from right to left,
//     and the first address that is not trusted is the client. Everything to
//     its left was sent by the client itself.
//   - All addresses are trusted, or the header is absent: the client is the
//     left-most trusted address.
//   - An address is unreadable: the key is "~hop:" and the key of the peer. All
//     such requests through one proxy share a limit, and no address invented by
//     the sender is used.
//
// The peer is http.Request.RemoteAddr as net/http sets it. Remove any
// middleware that overwrites it from a header: it would bypass these rules.
//
// Without prefixes the peer is always the client. That is right for a server
// that clients reach directly; behind a proxy all clients would share one key.
//
// Keys: an IPv4 address unchanged, "203.0.113.7"; IPv6 by its /64,
// "2001:db8:1:2::/64"; IPv4 inside IPv6 (NAT64, SIIT, 6to4, IPv4-mapped; see
// IPConfig.NAT64) as the IPv4 address; "~unix" for a Unix socket. Zones are
// dropped. A connection without an address is [ErrNoKey].
//
// ClientIP panics if a prefix is invalid, or if the prefixes hold all of IPv4
// or IPv6. [IPConfig] returns an error instead, and has all other settings.
func ClientIP(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Trusted: trusted}.HTTP())
}

// ClientIPHeader is [ClientIP] for a proxy that writes another header, such
// as X-Real-IP, CF-Connecting-IP or CloudFront-Viewer-Address. The header is read
// as a list of addresses, with or without ports, from right to left; "Forwarded"
// is read as by [Forwarded]. X-Forwarded-For is ignored.
//
// The proxy must set the header on each request. Many proxies forward unknown
// headers unchanged, and the client then chooses the value.
//
// It panics as ClientIP does, and if name is not a header name.
func ClientIPHeader(name string, trusted ...netip.Prefix) HTTP {
	require(name != "", "ClientIPHeader", "the name is empty")
	return must(IPConfig{Header: name, Trusted: trusted}.HTTP())
}

// TrustedHops is the n-th address of X-Forwarded-For from the right, n from 1
// to 64, for n proxies with unknown addresses. With one proxy, n is 1.
//
// Every peer is trusted. If clients can reach this server around the proxies,
// or n is larger than the number of proxies, a client chooses its key; if n is
// too small, the key is the address of a proxy. Prefer [ClientIP] where the
// addresses are known, or IPConfig with Hops and Trusted. A chain shorter than
// n gives "~hop:" and the key of the peer.
//
// It panics if n is out of range.
func TrustedHops(n int) HTTP {
	require(n > 0, "TrustedHops", "the number of proxies must be at least 1")
	return must(IPConfig{Hops: n, TrustAll: true}.HTTP())
}
