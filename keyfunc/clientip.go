package keyfunc

import "net/netip"

// ClientIP keys requests by the address of the client: of the connection or, if its peer is one of the
// trusted proxies, from X-Forwarded-For, by the rules of the package comment. Without prefixes the
// peer is always the client, as for a server that clients reach directly.
//
// The peer is http.Request.RemoteAddr as net/http sets it. Remove any middleware that overwrites it from
// a header: it would bypass these rules.
//
// Keys: an IPv4 address unchanged, "203.0.113.7"; IPv6 by its /64, "2001:db8:1:2::/64"; "~unix" for a
// Unix socket. A connection without an address is [ErrNoKey].
//
// ClientIP panics if a prefix is invalid, or if the prefixes hold all of IPv4 or IPv6. [IPConfig]
// returns an error instead, and has all other settings.
func ClientIP(trusted ...netip.Prefix) HTTP {
	return must(IPConfig{Trusted: trusted}.HTTP())
}
