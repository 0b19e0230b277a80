package keyfunc

import "net/netip"

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
// or IPv6. [IPConfig] returns an error instead, and has all other settings: another header, RFC 7239, proxies
// whose addresses change.
func ClientIP(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Trusted: trusted}.HTTP())
}
