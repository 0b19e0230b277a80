package clientip

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The examples of RFC 7239 sections 4 and 7.1.
// forwardedNodes are the nodes of a line.
func forwardedNodes(line string) ([]string, bool) {
	var nodes [maxHops]string
	n, ok := parseForwarded(line, &nodes)
	return append([]string(nil), nodes[:n]...), ok
}

func TestForwardedExamplesOfTheRFC(t *testing.T) {
	for line, want := range map[string][]string{
		`for="_gazonk"`:                                        {"_gazonk"},
		`For="[2001:db8:cafe::17]:4711"`:                       {"[2001:db8:cafe::17]:4711"},
		`for=192.0.2.60;proto=http;by=203.0.113.43`:            {"192.0.2.60"},
		`for=192.0.2.43, for=198.51.100.17`:                    {"192.0.2.43", "198.51.100.17"},
		`for=192.0.2.43, for="[2001:db8:cafe::17]"`:            {"192.0.2.43", "[2001:db8:cafe::17]"},
		`for=192.0.2.43,for="[2001:db8:cafe::17]",for=unknown`: {"192.0.2.43", "[2001:db8:cafe::17]", "unknown"},
		`for=_hidden, for=_SEVKISEK`:                           {"_hidden", "_SEVKISEK"},
	} {
		got, ok := forwardedNodes(line)
		require.True(t, ok, line)
		require.Equal(t, want, got, line)
	}
}

// FuzzS3_Forwarded: the nodes of a line, written again with every value in quotes,
// are parsed alike, and every line gives a key.
func FuzzS3_Forwarded(f *testing.F) {
	f.Add(`for=192.0.2.43, for="[2001:db8:cafe::17]:4711";proto=http`)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	rules, err := New(Config{Header: "Forwarded", Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	require.NoError(f, err)
	peer, _ := ParseEndpoint("10.0.0.1:1")
	f.Fuzz(func(t *testing.T, line string) {
		require.NotEmpty(t, rules.Find(peer, func(_, _ string) []string { return strings.Split(line, "\n") }))
		nodes, ok := forwardedNodes(line)
		if !ok {
			require.Empty(t, nodes)
			return
		}
		elements := make([]string, len(nodes))
		for i, node := range nodes {
			elements[i] = `For="` + escape.Replace(node) + `"; proto=http`
		}
		again, ok := forwardedNodes(strings.Join(elements, " , "))
		require.True(t, ok, "%q", line)
		require.Equal(t, nodes, again, "%q", line)
	})
}
