package keyfunc_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

const xff = "X-Forwarded-For"

// ours are the proxies of the trust table.
var ours = prefixes("10.0.0.0/8", "2001:db8:aaaa::/48")

// prefixes parses trusted prefixes.
func prefixes(texts ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range texts {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// request is a GET from a peer, with the lines of one header.
func request(peer, header string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.RemoteAddr = peer
	for _, line := range lines {
		r.Header.Add(header, line)
	}
	return r
}

// unixRequest is a request through a Unix socket whose other end has a name.
func unixRequest(name, header string, lines ...string) *http.Request {
	r := request(name, header, lines...)
	addr := &net.UnixAddr{Name: "/run/app.sock", Net: "unix"}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr)))
}

// tcp is the address of a TCP peer.
func tcp(s string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// keyOf is the key of a request that must have one.
func keyOf(t require.TestingT, key keyfunc.HTTP, r *http.Request) string {
	k, err := key(r)
	require.NoError(t, err)
	return k
}

// requireNoKey checks the result of a key function that found no identity.
func requireNoKey(t *testing.T, key string, err error) {
	t.Helper()
	require.ErrorIs(t, err, keyfunc.ErrNoKey)
	require.Empty(t, key)
}

// config makes the key function of a configuration that must be valid.
func config(t require.TestingT, c keyfunc.IPConfig) keyfunc.HTTP {
	key, err := c.HTTP()
	require.NoError(t, err)
	return key
}

// behind is the key function for proxies that write a header.
func behind(header string, trusted ...netip.Prefix) keyfunc.HTTP {
	return algo.Must(keyfunc.IPConfig{Header: header, Trusted: trusted}.HTTP())
}

// afterHops is the key function for n proxies whose addresses change.
func afterHops(n int) keyfunc.HTTP {
	return algo.Must(keyfunc.IPConfig{Hops: n, TrustAll: true}.HTTP())
}
