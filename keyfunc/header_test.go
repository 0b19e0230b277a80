package keyfunc_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestHeader(t *testing.T) {
	long := strings.Repeat("a", 129)
	for _, row := range []struct{ name, value, want string }{
		{"plain", "alice", "alice"},
		{"number", "42", "42"},
		{"UUID", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"},
		{"hexadecimal", "deadbeef", "deadbeef"},
		{"mail", "alice@example.com", "alice@example.com"},
		{"colon", "user:42", "user:42"},
		{"braces", "{tag}", "{tag}"},
		{"other scripts", "Łukasz 日本", "Łukasz 日本"},
		{"longest plain", long[:128], long[:128]},
		{"longer", long, "~value#c12cb024a2e5551cca0e08fce8f1c5e3"},
		{"IPv4", "203.0.113.7", "~value:203.0.113.7"},
		{"IPv6", "2001:DB8::1", "~value:2001:DB8::1"},
		{"IPv6 with a zone", "fe80::1%eth0", "~value:fe80::1%eth0"},
		{"prefix", "2001:db8::/64", "~value:2001:db8::/64"},
		{"method", "/package.Service/Method", "~value:/package.Service/Method"},
		{"route", "GET /items/{id}", "~value:GET /items/{id}"},
		{"SPIFFE ID", "spiffe://example.org/a", "~value:spiffe://example.org/a"},
		{"Unix socket", "~unix", "~value:~unix"},
		{"route with a host", "~route:acme/alice", "~value:~route:acme/alice"},
		{"name of this package", "~global", "~value:~global"},
		{"name of a value", "~value:x", "~value:~value:x"},
		{"control characters", "a\x00b", "~value#59b271ae1bbcb1d31d41929817f4b16f"},
		{"not UTF-8", "\xff", "~value#a8100ae6aa1940d0b663bb31cd466142"},
		{"line separator", "a\u2028b", "~value#fe2d3b945530c806f1ff5298f4486e3f"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := keyOf(t, keyfunc.Header("x-user"), request("192.0.2.1:1", "X-User", row.value))
			require.Equal(t, row.want, got)
		})
	}
}

// The names of users stay unchanged, unless they look like a key of another
// kind.
func TestIdentitiesStayThemselves(t *testing.T) {
	for _, id := range []string{
		"acme/alice", "a.b.c", "3.14", "abc:80", "local", "10.0.0.0.1", "dead:beef", "1.2.3", "1:2", "a/b", "John Smith/Sales",
		"GET", "GET it", "acme.example/items", "~x"[1:], "203.0.113.7:80", "spiffe:x", "::1/x", "300.1.1.1",
	} {
		require.Equal(t, id, keyfunc.Identity(id))
		require.Equal(t, id, keyOf(t, keyfunc.Header("X-User"), request("192.0.2.1:1", "X-User", id)))
	}
	for id, want := range map[string]string{
		"203.0.113.7": "~value:203.0.113.7", "::1": "~value:::1", "/acme/alice": "~value:/acme/alice", "": "",
		"POST acme/alice": "~value:POST acme/alice",
	} {
		require.Equal(t, want, keyfunc.Identity(id))
	}
	require.Equal(t, "~join/5:alice/5:GET /", keyfunc.JoinKeys("alice", "GET /"))
}

// A route and an identity never have the same key.
func FuzzS1_Route(f *testing.F) {
	for _, seed := range []string{"acme/alice", "GET /items", "get /items", "/items", "GET\t/x", "example.com/", "~route:x/y", "~unmatched"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := request("203.0.113.7:1", xff)
		r.Pattern = text
		require.NotEqual(t, keyfunc.Identity(text), keyOf(t, keyfunc.Route(), r))
		if id, pattern, tagged := strings.Cut(text, ":"); tagged && id == "~route" {
			r.Pattern = pattern
			require.NotEqual(t, keyfunc.Identity(text), keyOf(t, keyfunc.Route(), r))
		}
	})
}

func TestHeaderWithoutKey(t *testing.T) {
	for name, values := range map[string][]string{
		"absent":   nil,
		"empty":    {""},
		"repeated": {"alice", "alice"},
		"too long": {strings.Repeat("a", 128<<10+1)},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := keyfunc.Header("X-User")(request("192.0.2.1:1", "X-User", values...))
			requireNoKey(t, key, err)
			require.ErrorContains(t, err, `"X-User"`)
			require.NotContains(t, err.Error(), "alice")
		})
	}
}

// Long values differ although they begin alike, and short ones cannot be
// spelled like the hash of a long one.
func TestLongHeadersDoNotCollide(t *testing.T) {
	key := keyfunc.Header("X-User")
	long := strings.Repeat("a", 64<<10)
	seen := map[string]string{}
	values := []string{long, long + "1", long + "2", "1" + long}
	for _, v := range values[:3] {
		values = append(values, keyOf(t, key, request("192.0.2.1:1", "X-User", v)))
	}
	for _, v := range values {
		k := keyOf(t, key, request("192.0.2.1:1", "X-User", v))
		require.LessOrEqual(t, len(k), 140)
		require.NotContains(t, seen, k)
		seen[k] = v
	}
}

func TestHeaderNames(t *testing.T) {
	for _, name := range []string{"", "X User", "X-User:", "X\r\nUser", "Ü", "Host", "host"} {
		require.Panics(t, func() { keyfunc.Header(name) }, name)
		require.Panics(t, func() { keyfunc.Secret(name, []byte("pepper")) }, name)
	}
	require.PanicsWithValue(t, "keyfunc: Header: the header name is Host, which net/http keeps apart from the headers: use keyfunc.Host",
		func() { keyfunc.Header("Host") })
}

// FuzzS1_Header: a key is short, printable, and never looks like an address.
func FuzzS1_Header(f *testing.F) {
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
