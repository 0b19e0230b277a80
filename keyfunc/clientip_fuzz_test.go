package keyfunc_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/keyfunc"
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

// embedding are the well-known prefixes with an IPv4 address inside.
var embedding = prefixes("64:ff9b::/96", "64:ff9b:1::/96", "::ffff:0:0:0/96", "::/96", "2002::/16")

// embeds reports whether a holds an IPv4 address.
func embeds(a netip.Addr) bool {
	return slices.ContainsFunc(embedding, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}

// parseHop reads an address that may have brackets or a port.
func parseHop(s string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr(), nil
	}
	if in, ok := strings.CutPrefix(s, "["); ok {
		if in, ok = strings.CutSuffix(in, "]"); ok && strings.Contains(in, ":") {
			s = in
		}
	}
	return netip.ParseAddr(s)
}

// whole distinguishes IPv6 clients by their whole address.
func whole(t require.TestingT) keyfunc.HTTP {
	return config(t, keyfunc.IPConfig{Trusted: ours, IPv6Bits: 128, Header: "X-Real-IP"})
}

// FuzzS1_ClientIsNeverTrusted: behind a proxy, the key is the address of a proxy
// only if every hop is one; otherwise the key is outside all trusted prefixes,
// or says that the chain is unreadable. IPv4 inside IPv6 is left out: these addresses are
// compared as they stand and unwrapped afterwards.
func FuzzS1_ClientIsNeverTrusted(f *testing.F) {
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
			h, err := parseHop(strings.Trim(hop, " \t"))
			if err == nil && embeds(h) {
				return
			}
			all = all && err == nil && trustedBy(h.String())
		}
		require.Equal(t, all, trustedBy(a.String()), "%q gives %q", lines, key)
	})
}

// FuzzS1_UntrustedPeer: the headers of a peer that is not trusted never matter.
func FuzzS1_UntrustedPeer(f *testing.F) {
	f.Add(xff, "198.51.100.1, 10.0.0.2")
	keys := []keyfunc.HTTP{
		keyfunc.ClientIP(), keyfunc.ClientIP(ours...), behind("Forwarded", ours...), behind("X-Real-IP", ours...),
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

// TestS1_ClientIPAgainstModel compares chains of addresses of all kinds with a
// direct implementation of the documented rules.
func TestS1_ClientIPAgainstModel(t *testing.T) {
	hops := rapid.SampledFrom([]string{
		"10.0.0.2", "10.255.255.255", "::ffff:10.0.0.3", "2001:db8:aaaa::1%x", "2001:db8:aaaa:ffff::", // ours
		"203.0.113.7", "11.0.0.0", "::ffff:203.0.113.8", "2001:db8:aaab::1", "64:ff9b::10.0.0.1", "2001:db8::5%y", // others
		"", "nonsense", "0.0.0.0", "::", "::ffff:0.0.0.0", "010.0.0.1", "10.0.0.1/8", "10.0.0.1:80000", // unreadable
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

// model is the client of a chain given as one list.
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
	if embedding[0].Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.String()
}
