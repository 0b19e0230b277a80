package keyfunc_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

// TestClientIPTrust is the trust table: the client for a peer and the lines of
// X-Forwarded-For.
func TestClientIPTrust(t *testing.T) {
	for _, row := range []struct {
		name  string
		peer  string
		lines []string
		want  string
	}{
		{"untrusted peer", "203.0.113.7:999", nil, "203.0.113.7"},
		{"untrusted peer with header", "203.0.113.7:999", []string{"198.51.100.1"}, "203.0.113.7"},
		{"untrusted peer naming a proxy", "203.0.113.7:999", []string{"198.51.100.1, 10.0.0.1"}, "203.0.113.7"},
		{"untrusted peer with garbage", "203.0.113.7:999", []string{"\"\x00"}, "203.0.113.7"},
		{"trusted peer, no header", "10.0.0.1:999", nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1:999", []string{"203.0.113.7"}, "203.0.113.7"},
		{"two proxies", "10.0.0.1:999", []string{"203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"spoofed left-most", "10.0.0.1:999", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"spoofed left-most, two proxies", "10.0.0.1:999", []string{"198.51.100.1, 203.0.113.7, 10.9.9.9"}, "203.0.113.7"},
		{"spoofed proxy left of the client", "10.0.0.1:999", []string{"10.0.0.3, 203.0.113.7"}, "203.0.113.7"},
		{"spoofed garbage left of the client", "10.0.0.1:999", []string{"nonsense,,\", 203.0.113.7"}, "203.0.113.7"},
		{"several lines", "10.0.0.1:999", []string{"198.51.100.1", "203.0.113.7", "10.0.0.2"}, "203.0.113.7"},
		{"several lines, lists in them", "10.0.0.1:999", []string{"198.51.100.1, 198.51.100.2", "203.0.113.7, 10.0.0.3", "10.0.0.2"}, "203.0.113.7"},
		{"all trusted", "10.0.0.1:999", []string{"10.0.0.4, 10.0.0.3", "10.0.0.2"}, "10.0.0.4"},
		{"spaces and tabs", "10.0.0.1:999", []string{" \t203.0.113.7\t , \t10.0.0.2  "}, "203.0.113.7"},
		{"no spaces", "10.0.0.1:999", []string{"203.0.113.7,10.0.0.2"}, "203.0.113.7"},

		{"mapped peer is trusted", "[::ffff:10.0.0.1]:999", []string{"203.0.113.7"}, "203.0.113.7"},
		{"mapped peer is the client", "[::ffff:203.0.113.7]:999", nil, "203.0.113.7"},
		{"mapped hop is trusted", "10.0.0.1:999", []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"mapped hop in hexadecimal is trusted", "10.0.0.1:999", []string{"203.0.113.7, ::ffff:a00:2"}, "203.0.113.7"},
		{"mapped hop is the client", "10.0.0.1:999", []string{"::FFFF:203.0.113.7"}, "203.0.113.7"},
		{"mapped hop with a zone", "10.0.0.1:999", []string{"203.0.113.7, ::ffff:10.0.0.2%eth0"}, "203.0.113.7"},

		{"zone of the peer", "[fe80::1%eth0]:999", nil, "fe80::/64"},
		{"zone of a trusted peer", "[2001:db8:aaaa::1%eth0]:999", []string{"203.0.113.7"}, "203.0.113.7"},
		{"zone of a trusted hop", "10.0.0.1:999", []string{"203.0.113.7, 2001:db8:aaaa::1%eth0"}, "203.0.113.7"},
		{"zone of the client", "10.0.0.1:999", []string{"2001:db8::1%en0"}, "2001:db8::/64"},
		{"empty zone", "10.0.0.1:999", []string{"2001:db8::1%"}, "~hop:10.0.0.1"},
		{"zone of IPv4", "10.0.0.1:999", []string{"203.0.113.7%eth0"}, "~hop:10.0.0.1"},

		{"IPv6 client", "[2001:db8:1:2:3:4:5:6]:999", nil, "2001:db8:1:2::/64"},
		{"IPv6 client behind IPv6", "[2001:db8:aaaa::1]:999", []string{"2001:db8:1:2::9"}, "2001:db8:1:2::/64"},
		{"IPv6 upper case, zeros written out", "10.0.0.1:999", []string{"2001:0DB8:0001:0002:0000:0000:0000:0001"}, "2001:db8:1:2::/64"},
		{"IPv6 with embedded IPv4", "10.0.0.1:999", []string{"2001:db8:1:2::192.0.2.1"}, "2001:db8:1:2::/64"},
		{"neighbour of a proxy in its /64", "[2001:db8:aaab::2]:999", []string{"203.0.113.7"}, "2001:db8:aaab::/64"},

		{"NAT64 peer", "[64:ff9b::cb00:7107]:999", nil, "203.0.113.7"},
		{"NAT64 hop", "10.0.0.1:999", []string{"64:ff9b::203.0.113.7"}, "203.0.113.7"},
		{"NAT64 of a trusted address is not trusted", "10.0.0.1:999", []string{"203.0.113.7, 64:ff9b::10.0.0.2"}, "10.0.0.2"},
		{"NAT64 peer of a trusted address is not trusted", "[64:ff9b::10.0.0.1]:999", []string{"203.0.113.7"}, "10.0.0.1"},
		{"NAT64 of nothing", "10.0.0.1:999", []string{"64:ff9b::"}, "64:ff9b::/64"},
		{"NAT64 of a network (RFC 8215)", "10.0.0.1:999", []string{"64:ff9b:1::203.0.113.7"}, "203.0.113.7"},
		{"IPv4-compatible", "[::203.0.113.7]:999", nil, "203.0.113.7"},
		{"SIIT", "[::ffff:0:203.0.113.7]:999", nil, "203.0.113.7"},
		{"6to4", "[2002:cb00:7107::1]:999", nil, "203.0.113.7"},
		{"6to4, another subnet of the host", "[2002:cb00:7107:ffff::9]:999", nil, "203.0.113.7"},
		{"6to4 of a trusted address is not trusted", "[2002:a00:1::1]:999", []string{"203.0.113.7"}, "10.0.0.1"},
		{"loopback", "[::1]:999", nil, "::/64"},
		{"outside the NAT64 prefix", "10.0.0.1:999", []string{"64:ff9b::1:203.0.113.7"}, "64:ff9b::/64"},

		{"port", "10.0.0.1:999", []string{"203.0.113.7:4711"}, "203.0.113.7"},
		{"port of a proxy", "10.0.0.1:999", []string{"203.0.113.7, 10.0.0.2:80"}, "203.0.113.7"},
		{"brackets", "10.0.0.1:999", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"brackets and port", "10.0.0.1:999", []string{"[2001:db8::1]:65535"}, "2001:db8::/64"},
		{"port too large", "10.0.0.1:999", []string{"203.0.113.7:65536"}, "~hop:10.0.0.1"},
		{"port too long", "10.0.0.1:999", []string{"203.0.113.7:000080"}, "~hop:10.0.0.1"},
		{"port empty", "10.0.0.1:999", []string{"203.0.113.7:"}, "~hop:10.0.0.1"},
		{"port with a sign", "10.0.0.1:999", []string{"203.0.113.7:+80"}, "~hop:10.0.0.1"},
		{"brackets around IPv4", "10.0.0.1:999", []string{"[203.0.113.7]"}, "~hop:10.0.0.1"},
		{"bracket open", "10.0.0.1:999", []string{"[2001:db8::1"}, "~hop:10.0.0.1"},
		{"text after the bracket", "10.0.0.1:999", []string{"[2001:db8::1]80"}, "~hop:10.0.0.1"},

		{"malformed hop", "10.0.0.1:999", []string{"203.0.113.7, nonsense"}, "~hop:10.0.0.1"},
		{"malformed hop behind a proxy", "10.0.0.1:999", []string{"203.0.113.7, nonsense, 10.0.0.2"}, "~hop:10.0.0.1"},
		{"malformed hop, IPv6 peer", "[2001:db8:aaaa::1]:999", []string{"unknown"}, "~hop:2001:db8:aaaa::/64"},
		{"malformed hop in another line", "10.0.0.1:999", []string{"203.0.113.7", "nonsense", "10.0.0.2"}, "~hop:10.0.0.1"},
		{"empty hop", "10.0.0.1:999", []string{"198.51.100.1, , 10.0.0.2"}, "~hop:10.0.0.1"},
		{"empty last hop", "10.0.0.1:999", []string{"198.51.100.1,"}, "~hop:10.0.0.1"},
		{"empty line", "10.0.0.1:999", []string{""}, "~hop:10.0.0.1"},
		{"empty last line", "10.0.0.1:999", []string{"198.51.100.1", ""}, "~hop:10.0.0.1"},
		{"unspecified IPv4", "10.0.0.1:999", []string{"203.0.113.7, 0.0.0.0"}, "~hop:10.0.0.1"},
		{"unspecified IPv6", "10.0.0.1:999", []string{"203.0.113.7, ::"}, "~hop:10.0.0.1"},
		{"unspecified mapped", "10.0.0.1:999", []string{"203.0.113.7, ::ffff:0.0.0.0"}, "~hop:10.0.0.1"},
		{"leading zeros", "10.0.0.1:999", []string{"203.0.113.007"}, "~hop:10.0.0.1"},
		{"short IPv4", "10.0.0.1:999", []string{"10.1"}, "~hop:10.0.0.1"},
		{"decimal IPv4", "10.0.0.1:999", []string{"3405803783"}, "~hop:10.0.0.1"},
		{"hexadecimal IPv4", "10.0.0.1:999", []string{"0xcb.0.113.7"}, "~hop:10.0.0.1"},
		{"prefix", "10.0.0.1:999", []string{"203.0.113.0/24"}, "~hop:10.0.0.1"},
		{"quoted", "10.0.0.1:999", []string{`"203.0.113.7"`}, "~hop:10.0.0.1"},
		{"RFC 7239 in the wrong header", "10.0.0.1:999", []string{"for=203.0.113.7"}, "~hop:10.0.0.1"},
		{"host name", "10.0.0.1:999", []string{"localhost"}, "~hop:10.0.0.1"},
		{"not UTF-8", "10.0.0.1:999", []string{"203.0.113.7, \xff\xfe"}, "~hop:10.0.0.1"},
		{"control characters", "10.0.0.1:999", []string{"203.0.113.7\r\n"}, "~hop:10.0.0.1"},
		{"space that is not ASCII", "10.0.0.1:999", []string{"\u00a0203.0.113.7"}, "~hop:10.0.0.1"},
		{"address after very much space", "10.0.0.1:999", []string{"198.51.100.1" + strings.Repeat(" ", 500) + "203.0.113.7"}, "~hop:10.0.0.1"},

		{"peer without port", "203.0.113.7", nil, "203.0.113.7"},
		{"IPv6 peer without port", "2001:db8::1", nil, "2001:db8::/64"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, keyOf(t, keyfunc.ClientIP(ours...), request(row.peer, xff, row.lines...)))
		})
	}
}

func TestClientIPWithoutPeerAddress(t *testing.T) {
	for _, peer := range []string{"", "pipe", "example.com:80", "0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80", "10.0.0.1:http", "1.2.3.4:5:6", "10.0.0.1 :80", ":80", "[]:80"} {
		t.Run(peer, func(t *testing.T) {
			key, err := keyfunc.ClientIP(ours...)(request(peer, xff, "203.0.113.7"))
			requireNoKey(t, key, err)
		})
	}
}

// One spelling, one key: otherwise a client has as many limits as its address
// has spellings.
func TestClientIPSpellings(t *testing.T) {
	key := keyfunc.ClientIP(ours...)
	for want, spellings := range map[string][]string{
		"203.0.113.7":       {"203.0.113.7", "203.0.113.7:1", "::ffff:203.0.113.7", "::ffff:cb00:7107", "0:0:0:0:0:ffff:cb00:7107", "[::ffff:203.0.113.7]:1", "64:ff9b::203.0.113.7", "64:FF9B::cb00:7107"},
		"2001:db8:0:1::/64": {"2001:db8:0:1::", "2001:db8:0:1::1", "2001:DB8:0:1::1", "2001:0db8:0000:0001::1", "2001:db8:0:1:0:0:0:1", "2001:db8::1:ffff:ffff:ffff:ffff", "2001:db8:0:1::1%x"},
	} {
		for _, s := range spellings {
			require.Equal(t, want, keyOf(t, key, request("10.0.0.1:1", xff, s)), s)
		}
	}
}

func TestIPConfigHeader(t *testing.T) {
	for _, row := range []struct {
		name, header, sent string
		lines              []string
		want               string
	}{
		{"the header named", "X-Real-IP", "X-Real-Ip", []string{"203.0.113.7"}, "203.0.113.7"},
		{"header case", "x-rEAL-ip", "X-Real-Ip", []string{"203.0.113.7"}, "203.0.113.7"},
		{"another header", "X-Real-IP", xff, []string{"203.0.113.7"}, "10.0.0.1"},
		{"the last line counts", "Cf-Connecting-Ip", "Cf-Connecting-Ip", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"a port", "X-Real-IP", "X-Real-Ip", []string{"203.0.113.7:80"}, "203.0.113.7"},
		{"brackets", "X-Real-IP", "X-Real-Ip", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"X-Forwarded-For by name", "x-forwarded-for", xff, []string{"203.0.113.7:80"}, "203.0.113.7"},
		{"Forwarded by name", "forwarded", "Forwarded", []string{"for=203.0.113.7"}, "203.0.113.7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			key := behind(row.header, ours...)
			require.Equal(t, row.want, keyOf(t, key, request("10.0.0.1:1", row.sent, row.lines...)))
		})
	}
	require.Panics(t, func() { behind("X Real IP", ours...) })
	require.Panics(t, func() { behind("Host", ours...) })
}

// Of several headers, only the configured one is read.
func TestHeadersAreNotMerged(t *testing.T) {
	r := request("10.0.0.1:1", xff, "203.0.113.1")
	r.Header.Set("Forwarded", "for=203.0.113.2")
	r.Header.Set("X-Real-Ip", "203.0.113.3")
	require.Equal(t, "203.0.113.1", keyOf(t, keyfunc.ClientIP(ours...), r))
	require.Equal(t, "203.0.113.2", keyOf(t, behind("Forwarded", ours...), r))
	require.Equal(t, "203.0.113.3", keyOf(t, behind("X-Real-IP", ours...), r))
}

func TestIPConfigHops(t *testing.T) {
	chain := "198.51.100.9, 203.0.113.7, 192.0.2.2"
	for _, row := range []struct {
		name  string
		n     int
		lines []string
		want  string
	}{
		{"one proxy", 1, []string{chain}, "192.0.2.2"},
		{"two proxies", 2, []string{chain}, "203.0.113.7"},
		{"over lines", 2, []string{"198.51.100.9", "203.0.113.7", "192.0.2.2"}, "203.0.113.7"},
		{"as long as the chain", 3, []string{chain}, "198.51.100.9"},
		{"chain too short", 4, []string{chain}, "~hop:10.0.0.1"},
		{"no header", 1, nil, "~hop:10.0.0.1"},
		{"malformed to the right", 2, []string{"203.0.113.7, nonsense"}, "~hop:10.0.0.1"},
		{"malformed to the left", 1, []string{"nonsense, 203.0.113.7"}, "203.0.113.7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, keyOf(t, afterHops(row.n), request("10.0.0.1:1", xff, row.lines...)))
		})
	}
	for _, n := range []int{-1, 65} {
		require.Panics(t, func() { afterHops(n) }, n)
	}
}

// Reading is bounded; addresses beyond the bound are not trusted.
func TestBoundedWalk(t *testing.T) {
	proxies := func(n int) string { return strings.Repeat("10.0.0.2, ", n-1) + "10.0.0.2" }
	key := keyfunc.ClientIP(ours...)
	for _, row := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"the longest chain", []string{proxies(64)}, "10.0.0.2"},
		{"one more", []string{proxies(65)}, "~hop:10.0.0.1"},
		{"one more, in lines", []string{"10.0.0.2", proxies(64)}, "~hop:10.0.0.1"},
		{"ten thousand hops", []string{proxies(10_000)}, "~hop:10.0.0.1"},
		{"ten thousand hops beyond the client", []string{proxies(10_000) + ", 203.0.113.7"}, "203.0.113.7"},
		{"ten thousand lines", strings.Split(proxies(10_000), ", "), "~hop:10.0.0.1"},
		{"64 KiB without a comma", []string{strings.Repeat("1", 64<<10)}, "~hop:10.0.0.1"},
		{"64 KiB of space", []string{strings.Repeat(" ", 64<<10)}, "~hop:10.0.0.1"},
		{"64 KiB of commas", []string{strings.Repeat(",", 64<<10)}, "~hop:10.0.0.1"},
		{"64 KiB of zone", []string{"2001:db8::1%" + strings.Repeat("z", 64<<10)}, "~hop:10.0.0.1"},
		{"64 KiB beyond the client", []string{strings.Repeat("x", 64<<10) + ",203.0.113.7"}, "203.0.113.7"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, keyOf(t, key, request("10.0.0.1:1", xff, row.lines...)))
		})
	}
}

// A key does not keep a long header in memory.
func TestKeysAreNotPartsOfLongHeaders(t *testing.T) {
	for header, line := range map[string]string{
		xff:         strings.Repeat("198.51.100.1, ", 1000) + "203.0.113.7",
		"Forwarded": "for=203.0.113.7;x=" + strings.Repeat("a", 4000),
	} {
		k := keyOf(t, behind(header, ours...), request("10.0.0.1:1", header, line))
		require.Equal(t, "203.0.113.7", k)
		inside := uintptr(unsafe.Pointer(unsafe.StringData(k))) - uintptr(unsafe.Pointer(unsafe.StringData(line)))
		require.Greater(t, inside, uintptr(len(line)), header)
	}
}

// Many clients at once, more than cached keys.
func TestConcurrentClients(t *testing.T) {
	key := keyfunc.ClientIP(ours...)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				client := fmt.Sprintf("2001:db8:1:%x::", 1+(i*7+g)%3000)
				r := request("10.0.0.1:80", xff, client+"1")
				if k, err := key(r); err != nil || k != client+"/64" {
					t.Errorf("%s: %q, %v", client, k, err)
				}
			}
		})
	}
	wg.Wait()
}

// More clients than cached keys: each still gets its own key.
func TestManyClients(t *testing.T) {
	key := keyfunc.ClientIP(ours...)
	for i := range 20_000 {
		peer := fmt.Sprintf("[2001:db8:%x:%x::1]:80", i>>8, i&0xff)
		want := fmt.Sprintf("2001:db8:%x:%x::/64", i>>8, i&0xff)
		if i>>8 == 0 && i&0xff == 0 {
			want = "2001:db8::/64"
		} else if i>>8 == 0 {
			want = fmt.Sprintf("2001:db8:0:%x::/64", i&0xff)
		} else if i&0xff == 0 {
			want = fmt.Sprintf("2001:db8:%x::/64", i>>8)
		}
		require.Equal(t, want, keyOf(t, key, request(peer, xff)))
	}
}
