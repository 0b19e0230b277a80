package keyfunc_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestIPConfigErrors(t *testing.T) {
	for _, row := range []struct {
		name   string
		config keyfunc.IPConfig
		want   string
	}{
		{"all of IPv4", keyfunc.IPConfig{Trusted: prefixes("0.0.0.0/0")}, "TrustAll"},
		{"all of IPv6", keyfunc.IPConfig{Trusted: prefixes("::/0")}, "TrustAll"},
		{"all of IPv4, mapped", keyfunc.IPConfig{Trusted: prefixes("::ffff:0.0.0.0/96")}, "TrustAll"},
		{"all of IPv4, with host bits", keyfunc.IPConfig{Trusted: prefixes("10.0.0.1/0")}, "TrustAll"},
		{"all of IPv4 in halves", keyfunc.IPConfig{Trusted: prefixes("128.0.0.0/1", "10.0.0.0/8", "0.0.0.0/1")}, "TrustAll"},
		{"all of IPv4 and its neighbours", keyfunc.IPConfig{Trusted: prefixes("0.0.0.0/1", "128.0.0.0/1", "::fffe:0:0/96", "::1:0:0:0/96")}, "TrustAll"},
		{"all of IPv6 in pieces", keyfunc.IPConfig{Trusted: prefixes("8000::/1", "4000::/2", "::/2")}, "TrustAll"},
		{"wider than mapped", keyfunc.IPConfig{Trusted: prefixes("::ffff:0.0.0.0/90")}, "IPv4-mapped"},
		{"around mapped", keyfunc.IPConfig{Trusted: prefixes("::/64")}, "IPv4-mapped"},
		{"zero prefix", keyfunc.IPConfig{Trusted: []netip.Prefix{{}}}, "prefix"},
		{"prefix out of range", keyfunc.IPConfig{Trusted: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 33)}}, "prefix"},
		{"TrustAll and Trusted", keyfunc.IPConfig{TrustAll: true, Trusted: ours}, "contradict"},
		{"header name", keyfunc.IPConfig{Header: "X Real"}, "Header"},
		{"header Host", keyfunc.IPConfig{Header: "host"}, "Host"},
		{"hops below", keyfunc.IPConfig{Hops: -1, Trusted: ours}, "Hops"},
		{"hops above", keyfunc.IPConfig{Hops: 65, Trusted: ours}, "Hops"},
		{"hops without trust", keyfunc.IPConfig{Hops: 1}, "Hops"},
		{"bits of IPv4 below", keyfunc.IPConfig{IPv4Bits: 7}, "IPv4Bits"},
		{"bits of IPv4 above", keyfunc.IPConfig{IPv4Bits: 33}, "IPv4Bits"},
		{"bits below", keyfunc.IPConfig{IPv6Bits: 31}, "IPv6Bits"},
		{"bits above", keyfunc.IPConfig{IPv6Bits: 129}, "IPv6Bits"},
		{"bits negative", keyfunc.IPConfig{IPv6Bits: -1}, "IPv6Bits"},
		{"NAT64 of IPv4", keyfunc.IPConfig{NAT64: prefixes("10.0.0.0/8")}, "NAT64"},
		{"NAT64 of another length", keyfunc.IPConfig{NAT64: prefixes("2001:db8::/44")}, "NAT64"},
		{"NAT64 of nothing", keyfunc.IPConfig{NAT64: []netip.Prefix{{}}}, "NAT64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			key, err := row.config.HTTP()
			require.ErrorContains(t, err, row.want)
			require.Nil(t, key)
		})
	}
}

func TestShortFormsPanic(t *testing.T) {
	everything := prefixes("0.0.0.0/0")
	require.PanicsWithValue(t, "keyfunc: the trusted prefixes hold all of IPv4, so any client could choose its key: list only your proxies, or set IPConfig.TrustAll",
		func() { keyfunc.ClientIP(everything...) })
	require.Panics(t, func() { behind("Forwarded", everything...) })
	require.Panics(t, func() { behind("X-Real-IP", everything...) })
	require.Panics(t, func() { keyfunc.ClientIP(netip.Prefix{}) })
}

// Almost everything is not everything.
func TestWidePrefixes(t *testing.T) {
	key := keyfunc.ClientIP(prefixes("0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3", "8000::/1")...)
	require.Equal(t, "224.0.0.1", keyOf(t, key, request("192.0.2.1:1", xff, "9.9.9.9, 224.0.0.1, 127.0.0.1")))
}

// Merged prefixes trust the same addresses as the single ones, up to both
// ends.
func TestPrefixEdges(t *testing.T) {
	key := keyfunc.ClientIP(prefixes("10.0.1.0/24", "10.0.0.5/24", "10.0.0.128/25", "192.0.2.1/32", "::ffff:198.51.100.0/120", "2001:db8:5::/64", "2001:db8:5:1::/64", "255.255.255.255/32")...)
	for peer, trusted := range map[string]bool{
		"9.255.255.255": false, "10.0.0.0": true, "10.0.0.255": true, "10.0.1.0": true, "10.0.1.255": true, "10.0.2.0": false,
		"192.0.2.0": false, "192.0.2.1": true, "192.0.2.2": false,
		"198.51.99.255": false, "198.51.100.0": true, "198.51.100.255": true, "198.51.101.0": false,
		"255.255.255.254": false, "255.255.255.255": true,
		"2001:db8:4:ffff:ffff:ffff:ffff:ffff": false, "2001:db8:5::": true, "2001:db8:5:0:ffff:ffff:ffff:ffff": true, "2001:db8:5:1::": true, "2001:db8:5:2::": false,
	} {
		got := keyOf(t, key, request(net.JoinHostPort(peer, "80"), xff, "203.0.113.7"))
		require.Equal(t, trusted, got == "203.0.113.7", peer)
	}
}

// IPv4 clients by network, also inside IPv6; a Unix socket stays as it is.
func TestIPv4Bits(t *testing.T) {
	key := config(t, keyfunc.IPConfig{IPv4Bits: 24, IPv6Bits: 48})
	for peer, want := range map[string]string{
		"203.0.113.7:1": "203.0.113.0/24", "203.0.113.250:1": "203.0.113.0/24", "[::ffff:203.0.113.7]:1": "203.0.113.0/24",
		"[64:ff9b::203.0.113.9]:1": "203.0.113.0/24", "203.0.112.7:1": "203.0.112.0/24", "[2001:db8:1:2::3]:1": "2001:db8:1::/48", "@": "~unix",
	} {
		require.Equal(t, want, keyOf(t, key, request(peer, xff)), peer)
	}
	require.Equal(t, "203.0.113.7", keyOf(t, config(t, keyfunc.IPConfig{IPv4Bits: 32}), request("203.0.113.7:1", xff)))
	behind := config(t, keyfunc.IPConfig{IPv4Bits: 16, Trusted: ours})
	require.Equal(t, "203.0.0.0/16", keyOf(t, behind, request("10.0.0.1:1", xff, "203.0.113.7")))
	require.Equal(t, "~hop:10.0.0.0/16", keyOf(t, behind, request("10.0.0.1:1", xff, "nonsense")))
}

func TestIPv6Bits(t *testing.T) {
	for bits, want := range map[int]string{
		0:   "2001:db8:1234:5678::/64",
		32:  "2001:db8::/32",
		48:  "2001:db8:1234::/48",
		56:  "2001:db8:1234:5600::/56",
		64:  "2001:db8:1234:5678::/64",
		127: "2001:db8:1234:5678:9abc:def0:1234:5678/127",
		128: "2001:db8:1234:5678:9abc:def0:1234:5679",
	} {
		key := config(t, keyfunc.IPConfig{IPv6Bits: bits})
		require.Equal(t, want, keyOf(t, key, request("[2001:db8:1234:5678:9abc:def0:1234:5679]:1", xff)), bits)
		require.Equal(t, "203.0.113.7", keyOf(t, key, request("203.0.113.7:1", xff)), bits)
		require.Equal(t, "203.0.113.7", keyOf(t, key, request("[64:ff9b::203.0.113.7]:1", xff)), bits)
	}
}

// The examples of RFC 6052 section 2.4.
func TestNAT64(t *testing.T) {
	for prefix, address := range map[string]string{
		"2001:db8::/32":            "2001:db8:c000:221::",
		"2001:db8:100::/40":        "2001:db8:1c0:2:21::",
		"2001:db8:122::/48":        "2001:db8:122:c000:2:2100::",
		"2001:db8:122:300::/56":    "2001:db8:122:3c0:0:221::",
		"2001:db8:122:344::/64":    "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344::/96":    "2001:db8:122:344::192.0.2.33",
		"2001:db8:122:345::7:9/96": "2001:db8:122:345::192.0.2.33", // with host bits
	} {
		key := config(t, keyfunc.IPConfig{NAT64: prefixes(prefix)})
		require.Equal(t, "192.0.2.33", keyOf(t, key, request("["+address+"]:1", xff)), prefix)
		require.Equal(t, "203.0.113.7", keyOf(t, key, request("[64:ff9b::203.0.113.7]:1", xff)), prefix)
	}
}

func TestTrustAll(t *testing.T) {
	key := config(t, keyfunc.IPConfig{TrustAll: true})
	require.Equal(t, "203.0.113.7", keyOf(t, key, request("198.51.100.1:1", xff, "203.0.113.7, 198.51.100.2")))
	require.Equal(t, "198.51.100.1", keyOf(t, key, request("198.51.100.1:1", xff)))
	require.Equal(t, "~unix", keyOf(t, key, unixRequest("@", xff, "203.0.113.7")), "Unix sockets have their own switch")
}

func TestHopsOfTrustedPeers(t *testing.T) {
	key := config(t, keyfunc.IPConfig{Trusted: ours, Hops: 2, Header: "Forwarded"})
	chain := `for=198.51.100.9, for="[2001:db8::1]:80", for=192.0.2.2`
	require.Equal(t, "2001:db8::/64", keyOf(t, key, request("10.0.0.1:1", "Forwarded", chain)))
	require.Equal(t, "203.0.113.7", keyOf(t, key, request("203.0.113.7:1", "Forwarded", chain)), "the peer is not a proxy")
}

func TestUnixSockets(t *testing.T) {
	trusting := config(t, keyfunc.IPConfig{TrustUnix: true, Trusted: ours})
	for _, row := range []struct {
		name string
		key  keyfunc.HTTP
		r    *http.Request
		want string
	}{
		{"unnamed", keyfunc.ClientIP(), unixRequest("@", xff), "~unix"},
		{"unnamed elsewhere", keyfunc.ClientIP(), unixRequest("", xff), "~unix"},
		{"unnamed, listener unknown", keyfunc.ClientIP(), request("@", xff), "~unix"},
		{"headers do not count", keyfunc.ClientIP(ours...), unixRequest("@", xff, "203.0.113.7"), "~unix"},
		{"socket named like a client", keyfunc.ClientIP(ours...), unixRequest("203.0.113.7:80", xff), "~unix"},
		{"socket named like a proxy", keyfunc.ClientIP(ours...), unixRequest("10.0.0.1:80", xff, "203.0.113.7"), "~unix"},
		{"trusted", trusting, unixRequest("@", xff, "198.51.100.1, 203.0.113.7"), "203.0.113.7"},
		{"trusted, with another proxy", trusting, unixRequest("@", xff, "203.0.113.7, 10.0.0.2"), "203.0.113.7"},
		{"trusted, without a header", trusting, unixRequest("@", xff), "~unix"},
		{"trusted, malformed", trusting, unixRequest("@", xff, "unix:"), "~hop:~unix"},
		{"trusted, other peers are not", trusting, request("203.0.113.7:1", xff, "198.51.100.1"), "203.0.113.7"},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, keyOf(t, row.key, row.r)) })
	}
}

// The actual addresses of a connection from net/http and the kernel.
func TestRealConnections(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, row := range []struct{ network, address, want string }{
		{"unix", socket, "~unix"},
		{"tcp4", "127.0.0.1:0", "127.0.0.1"},
	} {
		t.Run(row.network, func(t *testing.T) {
			l, err := net.Listen(row.network, row.address)
			require.NoError(t, err)
			keys := make(chan string, 1)
			key := keyfunc.ClientIP()
			server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				k, err := key(r)
				keys <- k
				if err != nil {
					panic(err)
				}
			})}
			go server.Serve(l)
			defer server.Close()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
				return net.Dial(row.network, l.Addr().String())
			}}}
			response, err := client.Get("http://example.com/")
			require.NoError(t, err)
			response.Body.Close()
			require.Equal(t, row.want, <-keys)
		})
	}
}

// TestTrustIsNotMasked: a host in the /64 of a proxy is a client, although both
// would have the same key.
func TestTrustIsNotMasked(t *testing.T) {
	for _, trusted := range []string{"2001:db8::/126", "2001:db8:0:0:ffff:ffff:ffff:fffc/126"} {
		key := keyfunc.ClientIP(netip.MustParsePrefix(trusted))
		require.Equal(t, "2001:db8::/64", keyOf(t, key, request("[2001:db8::5]:1", xff, "203.0.113.7")), trusted)
	}
}
