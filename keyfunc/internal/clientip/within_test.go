package clientip_test

import (
	"context"
	"net"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// TestS1_Within: an exemption by network is for the address that is limited, over HTTP and gRPC, and no
// client can claim it by a header.
func TestS1_Within(t *testing.T) {
	prefixes := func(all ...string) (made []netip.Prefix) {
		for _, p := range all {
			made = append(made, netip.MustParsePrefix(p))
		}
		return made
	}
	c := keyfunc.IPConfig{Trusted: prefixes("10.0.7.0/24"), IPv6Bits: 48, IPv4Bits: 8}
	networks := prefixes("192.0.2.1/24", "::1/128", "2001:db8::/32", "10.0.7.9/32")
	overHTTP, err := c.Within(networks...)
	require.NoError(t, err)
	overGRPC, err := rpckey.Within(c, networks...)
	require.NoError(t, err)
	for name, row := range map[string]struct {
		peer, forwarded string
		want            bool
	}{
		"in a network":                    {"192.0.2.77:1", "", true},
		"in none":                         {"198.51.100.1:1", "", false},
		"claimed by a header":             {"198.51.100.1:1", "192.0.2.77", false},
		"by a trusted proxy":              {"10.0.7.1:1", "192.0.2.77", true},
		"in none, by a trusted proxy":     {"10.0.7.1:1", "198.51.100.1", false},
		"claimed through a trusted proxy": {"10.0.7.1:1", "192.0.2.77, 198.51.100.1", false},
		"unreadable":                      {"10.0.7.1:1", "192.0.2.77, x", false},
		"a proxy":                         {"10.0.7.9:1", "", true},
		"another proxy":                   {"10.0.7.8:1", "", false},
		"one address of IPv6":             {"[::1]:1", "", true},
		"its neighbor":                    {"[::2]:1", "", false},
		"IPv6":                            {"[2001:db8:1::1]:1", "", true},
		"IPv4 inside IPv6":                {"[64:ff9b::192.0.2.5]:1", "", true},
		"mapped":                          {"[::ffff:192.0.2.5]:1", "", true},
		"no address":                      {"", "192.0.2.77", false},
		"a socket":                        {"@", "192.0.2.77", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row.peer
		ctx := context.Background()
		if addr, err := netip.ParseAddrPort(row.peer); err == nil {
			ctx = peer.NewContext(ctx, &peer.Peer{Addr: net.TCPAddrFromAddrPort(addr)})
		} else if row.peer == "@" {
			ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}, LocalAddr: &net.UnixAddr{Name: "s", Net: "unix"}})
		}
		if row.forwarded != "" {
			r.Header.Set("X-Forwarded-For", row.forwarded)
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-forwarded-for", row.forwarded))
		}
		require.Equal(t, row.want, overHTTP(r), name)
		require.Equal(t, row.want, overGRPC(ctx, "/s/m"), name)
	}
	for _, wrong := range [][]netip.Prefix{nil, {{}}, prefixes("0.0.0.0/1", "128.0.0.0/1"), prefixes("::/0")} {
		for _, err := range []error{second(c.Within(wrong...)), second(rpckey.Within(c, wrong...))} {
			require.EqualError(t, err, "keyfunc: IPConfig.Within: want one valid network or more, not all of IPv4 or IPv6, in which nothing would be limited")
		}
	}
	_, err = keyfunc.IPConfig{Hops: -1}.Within(networks...)
	require.Error(t, err)
	r := httptest.NewRequest("GET", "/", nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { overHTTP(r) }))
}

func second[T any](_ T, err error) error { return err }
