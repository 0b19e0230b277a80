package keyfunc_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// trustedBy reports whether s is an address, or a prefix, in one of ours.
func trustedBy(s string) bool {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil {
		return false
	}
	for _, p := range ours {
		if p.Contains(a.Unmap().WithZone("")) {
			return true
		}
	}
	return false
}

// wellKnownNAT64 is RFC 6052's prefix.
var wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")

// whole tells IPv6 clients apart by their whole address.
func whole(t require.TestingT) keyfunc.HTTP {
	return config(t, keyfunc.IPConfig{Trusted: ours, IPv6Bits: 128, Header: "X-Real-IP"})
}

// FuzzClientIsNeverTrusted: behind a proxy, the key is the address of a proxy
// only if every hop is one; otherwise the key is outside all trusted prefixes,
// or says that the chain is unreadable. NAT64 is left out: its addresses are
// compared as they stand and unwrapped afterwards.
func FuzzClientIsNeverTrusted(f *testing.F) {
	f.Add("203.0.113.7, 10.0.0.2")
	byAddress := whole(f)
	f.Fuzz(func(t *testing.T, lines string) {
		sent := strings.Split(lines, "\n")
		key := keyOf(t, byAddress, request("10.0.0.1:1", "X-Real-Ip", sent...))
		if key == "~hop:10.0.0.1" {
			return
		}
		a, err := netip.ParseAddr(key)
		require.NoError(t, err, "%q gives %q", lines, key)
		all := true
		for _, hop := range strings.Split(strings.Join(sent, ","), ",") {
			h, err := netip.ParseAddr(strings.Trim(hop, " \t"))
			if err == nil && wellKnownNAT64.Contains(h.WithZone("")) {
				return
			}
			all = all && err == nil && trustedBy(h.String())
		}
		require.Equal(t, all, trustedBy(a.String()), "%q gives %q", lines, key)
	})
}

// FuzzUntrustedPeer: the headers of a peer that is not trusted never matter.
func FuzzUntrustedPeer(f *testing.F) {
	f.Add(xff, "198.51.100.1, 10.0.0.2")
	keys := []keyfunc.HTTP{
		keyfunc.ClientIP(), keyfunc.ClientIP(ours...), keyfunc.Forwarded(ours...), keyfunc.ClientIPHeader("X-Real-IP", ours...),
		config(f, keyfunc.IPConfig{Trusted: ours, Hops: 1}), config(f, keyfunc.IPConfig{Trusted: ours, TrustUnix: true}),
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		r := request("203.0.113.7:1", name, value)
		for _, header := range []string{xff, "Forwarded", "X-Real-Ip"} {
			r.Header[header] = strings.Split(value, "\n")
		}
		for _, key := range keys {
			require.Equal(t, "203.0.113.7", keyOf(t, key, r))
		}
	})
}

// FuzzJoin: two lists of parts that differ give keys that differ.
func FuzzJoin(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		require.Equal(t, a == c && b == d, joined(t, a, b) == joined(t, c, d))
		require.Equal(t, a == c, joined(t, a) == joined(t, c))
		require.NotEqual(t, joined(t, a, b), joined(t, c))
		require.NotEqual(t, joined(t, a, b), joined(t, a, b, ""))
		require.NotEqual(t, joined(t, a, b), joined(t, a, b, c))
		require.NotEqual(t, joined(t, joined(t, a, b), c), joined(t, a, joined(t, b, c)))
	})
}

// FuzzForwarded: what the parser has read, written anew with every value in
// quotes, reads the same; and the whole never fails to answer.
func FuzzForwarded(f *testing.F) {
	f.Add(`for=192.0.2.43, for="[2001:db8:cafe::17]:4711";proto=http`)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	key := keyfunc.Forwarded(ours...)
	f.Fuzz(func(t *testing.T, line string) {
		keyOf(t, key, request("10.0.0.1:1", "Forwarded", strings.Split(line, "\n")...))
		nodes, ok := keyfunc.ParseForwarded(line)
		if !ok {
			require.Empty(t, nodes)
			return
		}
		elements := make([]string, len(nodes))
		for i, node := range nodes {
			elements[i] = `For="` + escape.Replace(node) + `"; proto=http`
		}
		again, ok := keyfunc.ParseForwarded(strings.Join(elements, " , "))
		require.True(t, ok, "%q", line)
		require.Equal(t, nodes, again, "%q", line)
	})
}

// FuzzParseAddr: the parser takes what net/netip takes, with the zone set
// aside and without the addresses that name no host.
func FuzzParseAddr(f *testing.F) {
	f.Add("203.0.113.7")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := netip.ParseAddr(s)
		want = want.WithZone("").Unmap()
		got, text, ok := keyfunc.ParseAddr(s)
		if err != nil || want.IsUnspecified() || want == netip.MustParseAddr("64:ff9b::") {
			require.False(t, ok, "%q", s)
			return
		}
		require.True(t, ok, "%q", s)
		require.Equal(t, want, got, "%q", s)
		if text != "" {
			require.Equal(t, want.String(), text, "%q", s)
		}
	})
}

// FuzzHeader: a key is short, printable, and not like that of an address.
func FuzzHeader(f *testing.F) {
	f.Add("alice")
	f.Add("fe80::1%eth0")
	f.Fuzz(func(t *testing.T, value string) {
		key, err := keyfunc.Header("X-User")(request("203.0.113.7:1", "X-User", value))
		if value == "" {
			requireNoKey(t, key, err)
			return
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(key), 140)
		require.True(t, utf8.ValidString(key))
		require.False(t, strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }))
		_, err = netip.ParseAddr(key)
		require.Error(t, err)
		if key != value {
			require.Regexp(t, "^~value[:#]", key)
		}
	})
}

// TestClientIPAgainstModel compares the walk, on chains made of addresses of
// all kinds, with a plain reading of its rules.
func TestClientIPAgainstModel(t *testing.T) {
	hops := rapid.SampledFrom([]string{
		"10.0.0.2", "10.255.255.255", "::ffff:10.0.0.3", "2001:db8:aaaa::1%x", "2001:db8:aaaa:ffff::", // ours
		"203.0.113.7", "11.0.0.0", "::ffff:203.0.113.8", "2001:db8:aaab::1", "64:ff9b::10.0.0.1", "2001:db8::5%y", // others
		"", "nonsense", "0.0.0.0", "::", "::ffff:0.0.0.0", "010.0.0.1", "10.0.0.1/8", "10.0.0.1:80", // unreadable
	})
	peers := rapid.SampledFrom([]string{"10.0.0.1", "2001:db8:aaaa::9", "203.0.113.9", "2001:db8:ffff::1"})
	rapid.Check(t, func(t *rapid.T) {
		peer := peers.Draw(t, "peer")
		chain := rapid.SliceOfN(hops, 0, 8).Draw(t, "chain")
		var lines []string
		for rest := chain; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "hops in the line")
			lines, rest = append(lines, strings.Join(rest[:n], " ,\t")), rest[n:]
		}
		r := request("["+peer+"]:1", "X-Real-Ip", lines...)
		if !strings.Contains(peer, ":") {
			r.RemoteAddr = peer + ":1"
		}
		require.Equal(t, model(peer, chain), keyOf(t, whole(t), r), "%q %q", peer, lines)
	})
}

// model is who the client is, on the chain as one list.
func model(peer string, chain []string) string {
	client := peer
	for i := len(chain) - 1; i >= 0 && trustedBy(client); i-- {
		a, err := netip.ParseAddr(chain[i])
		if err != nil || a.Unmap().IsUnspecified() {
			return "~hop:" + peer
		}
		client = chain[i]
	}
	a := netip.MustParseAddr(client).WithZone("").Unmap()
	if wellKnownNAT64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.String()
}

// The body is not touched by any key function.
func TestBodyIsNeverRead(t *testing.T) {
	for _, w := range works() {
		w.r.Body = untouchable{t}
		_, _ = w.key(w.r)
	}
	for _, key := range []keyfunc.HTTP{keyfunc.Global(), keyfunc.BasicUser(), keyfunc.ClientCert(), keyfunc.Pattern(http.NewServeMux())} {
		r := request("203.0.113.7:1", xff)
		r.Method, r.Body = http.MethodPost, untouchable{t}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		_, _ = key(r)
	}
}

// untouchable is a body that fails the test when it is used.
type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, nil
}

func (u untouchable) Close() error {
	u.t.Error("the body was closed")
	return nil
}
