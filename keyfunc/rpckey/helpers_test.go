package rpckey_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
)

// call is the context of a call from a peer, with pairs of metadata.
func call(addr net.Addr, pairs ...string) context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: addr})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(pairs...))
}

// rpcKeyOf is the key of a call that must have one.
func rpcKeyOf(t require.TestingT, key keyfunc.RPC, ctx context.Context, method string) string {
	k, err := key(ctx, method)
	require.NoError(t, err)
	return k
}

const xff = "X-Forwarded-For"

// ours are the trusted proxies.
var ours = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:aaaa::/48")}

// tcp is the address of a TCP peer.
func tcp(s string) *net.TCPAddr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// request is a GET from a peer.
func request(peer string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/", nil)
	r.RemoteAddr = peer
	return r
}

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
