package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestForwarded(t *testing.T) {
	const bad = "~hop:10.0.0.1"
	for _, row := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"one hop", []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"absent", nil, "10.0.0.1"},
		{"other parameters", []string{"proto=https;for=203.0.113.7;by=10.0.0.1;host=example.com"}, "203.0.113.7"},
		{"extension parameter", []string{`x-y="a,b;c=d";for=203.0.113.7`}, "203.0.113.7"},
		{"name in upper case", []string{"FOR=203.0.113.7"}, "203.0.113.7"},
		{"spoofed left-most", []string{"for=198.51.100.1, for=203.0.113.7, for=10.0.0.2"}, "203.0.113.7"},
		{"several lines", []string{"for=198.51.100.1", "for=203.0.113.7", "for=10.0.0.2"}, "203.0.113.7"},
		{"all trusted", []string{"for=10.0.0.3, for=10.0.0.2"}, "10.0.0.3"},
		{"spaces around commas and semicolons", []string{"for=198.51.100.1 ,\tfor=203.0.113.7 ; proto=http"}, "203.0.113.7"},
		{"empty pairs", []string{";;for=203.0.113.7;;"}, "203.0.113.7"},

		{"quoted", []string{`for="203.0.113.7"`}, "203.0.113.7"},
		{"quoted with port", []string{`for="203.0.113.7:4711"`}, "203.0.113.7"},
		{"quoted IPv6", []string{`for="[2001:db8:cafe::17]"`}, "2001:db8:cafe::/64"},
		{"quoted IPv6 with port", []string{`For="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::/64"},
		{"quoted pair", []string{`for="203\.0.\1\13.7"`}, "203.0.113.7"},
		{"quoted pair first", []string{`for="\203.0.113.7"`}, "203.0.113.7"},
		{"mapped", []string{`for="[::ffff:203.0.113.7]"`}, "203.0.113.7"},
		{"mapped proxy", []string{`for=203.0.113.7, for="[::ffff:10.0.0.2]"`}, "203.0.113.7"},
		{"NAT64", []string{`for="[64:ff9b::203.0.113.7]"`}, "203.0.113.7"},
		{"obfuscated port", []string{`for="203.0.113.7:_a.B-c_9"`}, "203.0.113.7"},
		{"obfuscated port of IPv6", []string{`for="[2001:db8::1]:_x"`}, "2001:db8::/64"},
		{"comma in quotes", []string{`for=203.0.113.7;host="a, for=198.51.100.1"`}, "203.0.113.7"},
		{"escaped quote in quotes", []string{`for=203.0.113.7;host="\", for=198.51.100.1"`}, "203.0.113.7"},

		{"unknown", []string{"for=198.51.100.1, for=unknown"}, bad},
		{"unknown left of the client", []string{"for=unknown, for=203.0.113.7"}, "203.0.113.7"},
		{"obfuscated", []string{"for=198.51.100.1, for=_hidden"}, bad},
		{"obfuscated and quoted", []string{`for="_SEVKISEK"`}, bad},
		{"element without for", []string{"for=198.51.100.1, proto=https"}, bad},
		{"empty element", []string{"for=198.51.100.1,"}, bad},
		{"empty line", []string{""}, bad},
		{"empty for", []string{"for="}, bad},
		{"empty quoted for", []string{`for=""`}, bad},
		{"two fors", []string{"for=203.0.113.7;for=198.51.100.1"}, bad},
		{"two fors, other case", []string{"for=203.0.113.7;For=198.51.100.1"}, bad},
		{"IPv6 without quotes", []string{"for=[2001:db8::1]"}, bad},
		{"IPv6 without brackets", []string{`for="2001:db8::1"`}, bad},
		{"port without quotes", []string{"for=203.0.113.7:80"}, bad},
		{"IPv4 in brackets", []string{`for="[203.0.113.7]"`}, bad},
		{"unspecified", []string{`for="[::]"`}, bad},
		{"port too large", []string{`for="203.0.113.7:65536"`}, bad},
		{"port empty", []string{`for="203.0.113.7:"`}, bad},
		{"obfuscated port empty", []string{`for="203.0.113.7:_"`}, bad},
		{"obfuscated port with a character too many", []string{`for="203.0.113.7:_a!"`}, bad},
		{"space in the quotes", []string{`for=" 203.0.113.7"`}, bad},
		{"space around the equals sign", []string{"for =203.0.113.7"}, bad},
		{"space after the equals sign", []string{"for= 203.0.113.7"}, bad},
		{"no value", []string{"for"}, bad},
		{"no name", []string{"=203.0.113.7"}, bad},
		{"plain address", []string{"203.0.113.7"}, bad},
		{"two words", []string{"for=203.0.113.7 proto=http"}, bad},
		{"text after the quotes", []string{`for="203.0.113.7"x`}, bad},
		{"control character in quotes", []string{"for=203.0.113.7;host=\"\x01\""}, bad},
		{"not UTF-8 in quotes", []string{"for=203.0.113.7;host=\"\xff\""}, "203.0.113.7"},
		{"not UTF-8 outside", []string{"for=203.0.113.7;host=\xff"}, bad},
		{"quote left open", []string{`for="203.0.113.7`}, bad},
		{"backslash at the end", []string{`for="203.0.113.7\`}, bad},
		{"quote opened to the left", []string{`for=", for=203.0.113.7`}, bad},
		{"quote opened to the left, another behind", []string{`for=9.9.9.9;a=", for="[2001:db8::1]"`}, bad},
		{"quote opened in another line", []string{`for="`, "for=203.0.113.7"}, "203.0.113.7"},
		{"ten thousand hops", []string{strings.Repeat("for=10.0.0.2,", 10_000) + "for=203.0.113.7"}, bad},
		{"ten thousand lines", strings.Split(strings.Repeat("for=10.0.0.2,", 9_999)+"for=10.0.0.2", ","), bad},
		{"64 KiB", []string{"for=203.0.113.7;x=" + strings.Repeat("a", 64<<10)}, bad},
		{"many long lines", []string{"for=203.0.113.7", "for=10.0.0.2;x=" + strings.Repeat("a", 5000), "for=10.0.0.2;x=" + strings.Repeat("a", 5000)}, bad},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, keyOf(t, behind("Forwarded", ours...), request("10.0.0.1:1", "Forwarded", row.lines...)))
		})
	}
}

func TestForwardedOfUntrustedPeer(t *testing.T) {
	r := request("203.0.113.7:1", "Forwarded", "for=198.51.100.1")
	require.Equal(t, "203.0.113.7", keyOf(t, behind("Forwarded", ours...), r))
	require.Equal(t, "203.0.113.7", keyOf(t, behind("Forwarded"), r))
}
