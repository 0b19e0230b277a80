package keyfunc

import (
	"net/netip"
)

// PeerIP is the address of the connecting peer of a call, whatever the
// metadata says. It is right for a server that clients reach directly; behind
// a proxy, use [RPCClientIP]. Keys and errors are those of [ClientIP], so a
// client has the same key over both transports.
func PeerIP() RPC {
	rules := must(IPConfig{}.rules())
	return rules.fromPeer
}

// RPCClientIP is [ClientIP] for gRPC: the address of the client, read from
// the connection and, when the connecting peer is one of the trusted proxies,
// from the metadata key x-forwarded-for. It panics as ClientIP does. For
// another header, counted hops or Unix sockets use [IPConfig.RPC].
func RPCClientIP(trusted ...netip.Prefix) RPC {
	return must(IPConfig{Trusted: trusted}.RPC())
}
