package rpckey_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// named is an address of some other kind.
type named struct{ network, text string }

func (n named) Network() string { return n.network }

func (n named) String() string { return n.text }

func TestPeerIP(t *testing.T) {
	zoned := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: "eth0"}
	for _, row := range []struct {
		name string
		addr net.Addr
		want string
	}{
		{"IPv4", tcp("203.0.113.7:1"), "203.0.113.7"},
		{"IPv4 in 16 bytes", &net.TCPAddr{IP: net.ParseIP("203.0.113.7"), Port: 1}, "203.0.113.7"},
		{"mapped", tcp("[::ffff:203.0.113.7]:1"), "203.0.113.7"},
		{"IPv6", tcp("[2001:db8::1]:1"), "2001:db8::/64"},
		{"NAT64", tcp("[64:ff9b::203.0.113.7]:1"), "203.0.113.7"},
		{"zone", zoned, "fe80::/64"},
		{"Unix socket", &net.UnixAddr{Net: "unix"}, "~unix"},
		{"Unix socket named like an address", &net.UnixAddr{Name: "10.0.0.1:80", Net: "unix"}, "~unix"},
		{"wrapped Unix socket", named{"unix", "@"}, "~unix"},
		{"wrapped TCP", named{"tcp", "203.0.113.7:1"}, "203.0.113.7"},
		{"UDP", &net.UDPAddr{IP: net.ParseIP("203.0.113.7"), Port: 1}, "203.0.113.7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, rpcKeyOf(t, rpckey.PeerIP(), call(row.addr, "x-forwarded-for", "198.51.100.1"), "/s/m"))
		})
	}
	for name, ctx := range map[string]context.Context{
		"no peer":       context.Background(),
		"no address":    call(nil),
		"nil peer":      peer.NewContext(context.Background(), nil),
		"nil TCP":       call((*net.TCPAddr)(nil)),
		"empty TCP":     call(&net.TCPAddr{}),
		"unspecified":   call(tcp("0.0.0.0:1")),
		"in memory":     call(named{"bufconn", "bufconn"}),
		"broken length": call(&net.TCPAddr{IP: net.IP{1, 2, 3}}),
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []keyfunc.RPC{rpckey.PeerIP(), rpckey.ClientIP(ours...)} {
				k, err := key(ctx, "/s/m")
				requireNoKey(t, k, err)
			}
		})
	}
}

// A client has the same key over both transports, directly and behind proxies.
func TestSameKeyOverBothTransports(t *testing.T) {
	for _, row := range []struct{ peer, chain string }{
		{"203.0.113.7:1", ""},
		{"203.0.113.7:1", "198.51.100.1"},
		{"[2001:db8::1]:1", ""},
		{"[64:ff9b::203.0.113.7]:1", ""},
		{"[::ffff:203.0.113.7]:1", ""},
		{"10.0.0.1:1", "198.51.100.1, 203.0.113.7"},
		{"10.0.0.1:1", "2001:db8::1, 10.0.0.2"},
		{"10.0.0.1:1", "nonsense"},
		{"[2001:db8:aaaa::1]:1", "nonsense"},
	} {
		r := request(row.peer)
		ctx := call(tcp(row.peer))
		if row.chain != "" {
			r.Header.Set(xff, row.chain)
			ctx = call(tcp(row.peer), "X-Forwarded-For", row.chain)
		}
		require.Equal(t, keyOf(t, keyfunc.ClientIP(ours...), r), rpcKeyOf(t, rpckey.ClientIP(ours...), ctx, "/s/m"), row)
		require.Equal(t, keyOf(t, keyfunc.ClientIP(), r), rpcKeyOf(t, rpckey.PeerIP(), ctx, "/s/m"), row)
	}
}

func TestClientIP(t *testing.T) {
	key := rpckey.ClientIP(ours...)
	require.Equal(t, "203.0.113.7", rpcKeyOf(t, key, call(tcp("10.0.0.1:1"), "x-forwarded-for", "198.51.100.1", "x-forwarded-for", "203.0.113.7"), "/s/m"))
	require.Equal(t, "192.0.2.9", rpcKeyOf(t, key, call(tcp("192.0.2.9:1"), "x-forwarded-for", "203.0.113.7"), "/s/m"))

	unix, err := rpckey.FromConfig(keyfunc.IPConfig{TrustUnix: true, Header: "Forwarded"})
	require.NoError(t, err)
	require.Equal(t, "203.0.113.7", rpcKeyOf(t, unix, call(&net.UnixAddr{Net: "unix"}, "forwarded", "for=203.0.113.7"), "/s/m"))
}

func TestFromConfigErrors(t *testing.T) {
	for name, config := range map[string]keyfunc.IPConfig{
		"all of IPv4":        {Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		"contradicting":      {TrustAll: true, Trusted: ours},
		"header name":        {Header: "X Real"},
		"hops without trust": {Hops: 1},
		"bits below":         {IPv6Bits: 31},
	} {
		_, want := config.HTTP()
		require.Error(t, want, name)
		key, err := rpckey.FromConfig(config)
		require.Equal(t, want, err, name)
		require.Nil(t, key, name)
		require.Panics(t, func() { rpckey.ClientIP(netip.Prefix{}) })
	}
}

func TestPeerIPDoesNotAllocate(t *testing.T) {
	for _, addr := range []string{"203.0.113.7:4711", "[2001:db8::1]:4711"} {
		key, ctx := rpckey.PeerIP(), call(tcp(addr))
		require.Zero(t, testing.AllocsPerRun(1000, func() { key(ctx, "/s/m") }), addr)
	}
}
