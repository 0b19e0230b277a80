package keyfunc

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/sluice-go/sluice/keyfunc/internal/clientip"
)

// IPConfig configures how to find the address of a client. The zero value is
// [ClientIP] without trusted proxies: the connecting peer is the client. For
// gRPC pass it to rpckey.FromConfig.
type IPConfig struct {
	// Trusted are the addresses of your own proxies, and no others. Host bits
	// are ignored: 10.1.2.3/8 is 10.0.0.0/8. Prefixes that hold all of IPv4
	// or IPv6, alone or together, are an error; see TrustAll.
	Trusted []netip.Prefix

	// Header is the only header read, when the peer is trusted. The default
	// is X-Forwarded-For. Every other header but "Forwarded" has addresses, with or without
	// ports, separated by commas if there are several. In CloudFront-Viewer-Address a port
	// follows each address, and IPv6 needs no brackets.
	//
	// The proxy must set the header on each request. Many proxies forward unknown
	// headers unchanged, and the client then chooses the value.
	//
	// "Forwarded" is read by the grammar of RFC 7239, with its quoting, brackets and ports. An
	// address that is "unknown", obfuscated or absent is unreadable. So is every address of a
	// line with an error anywhere in it: otherwise a client could leave a quote open and hide
	// the address that the proxy adds. A client can therefore put itself into the shared limit
	// of unreadable addresses.
	Header string

	// Hops, if above 0, is the number of proxies between the client and
	// this server, 1 to 64: the client is then the Hops-th address from the
	// right, trusted or not, and a shorter chain gives "~hop:" and the key of the peer. With one
	// proxy it is 1. If it is larger than the number of proxies, a client chooses its key; if
	// smaller, the key is the address of a proxy. The peer must still be trusted by one of the
	// Trust fields. The default, 0, finds the client by Trusted.
	Hops int

	// IPv4Bits is the length of the prefix that distinguishes IPv4 clients, 8 to 32. The default,
	// 0, is 32: the whole address. With 24 the key is "203.0.113.0/24": for a second limit, on
	// the networks of clients that change their address.
	IPv4Bits int

	// IPv6Bits is the length of the prefix that distinguishes IPv6 clients, 32
	// to 128. The default, 0, is 64: one subscriber has at least a /64 and can
	// use a new address in it for each request. The holder of a wider prefix
	// has many keys: docs/guides/proxies.md has limits on these.
	IPv6Bits int

	// NAT64 are the prefixes of your own translators between IPv4 and IPv6, of
	// 32, 40, 48, 56, 64 or 96 bits (RFC 6052). The key of an address in one
	// of them is the IPv4 address inside. The default, none, has the
	// well-known prefixes: 64:ff9b::/96, 64:ff9b:1::/96 (RFC 8215),
	// ::ffff:0:0:0/96 (SIIT, RFC 2765), ::/96 and 2002::/16 (6to4, RFC 3056).
	NAT64 []netip.Prefix

	// TrustUnix reads the header on connections through a Unix socket. By
	// default these all have the key "~unix".
	TrustUnix bool

	// TrustAll trusts every peer that has an address, and every address in
	// the header. Without Hops, any client can choose its key. It does not
	// include Unix sockets, and cannot be used together with Trusted.
	TrustAll bool
}

var errNoPeer = noKey("the connection has no address")

// HTTP makes the key function for net/http. It fails, naming the fields, on
// values out of range and on fields that contradict each other.
func (c IPConfig) HTTP() (HTTP, error) {
	rules, err := clientip.New(clientip.Config(c))
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) (string, error) {
		peer, ok := requestPeer(r)
		if !ok {
			return "", errNoPeer
		}
		return rules.Find(peer, func(name, _ string) []string { return r.Header[name] }), nil
	}, nil
}

// Within makes a function for httpmw.WithSkip that exempts the clients of networks: it reports
// whether the address of a request's client, as HTTP finds it, is in one of them.
//
//	httpmw.WithSkip(algo.Must(keyfunc.IPConfig{Trusted: proxies}.Within(office, probes)))
//
// Within ignores host bits of the networks, IPv4Bits and IPv6Bits; IPv4 inside IPv6 is IPv4. An
// unreadable or missing address is in no network. No client can claim a network by a header, unless
// too many proxies are trusted. Within fails as HTTP does, without a network, and on networks that hold
// all of IPv4 or IPv6.
func (c IPConfig) Within(networks ...netip.Prefix) (func(*http.Request) bool, error) {
	within, err := clientip.Within(clientip.Config(c), networks)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) bool {
		peer, ok := requestPeer(r)
		return ok && within.Have(peer, func(name, _ string) []string { return r.Header[name] })
	}, nil
}

// requestPeer returns the other end of the connection of a request.
//
// It recognizes a Unix socket by the address of the listener: a client may bind
// its own end to a file named like an address, "10.0.0.1:80", and RemoteAddr is
// then that name.
func requestPeer(r *http.Request) (clientip.Address, bool) {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if clientip.IsUnix(addr) || r.RemoteAddr == "@" {
		return clientip.Unix, true
	}
	return clientip.ParseEndpoint(r.RemoteAddr)
}
