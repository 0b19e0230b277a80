package keyfunc_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
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
		{"Unix socket", "local", "~value:local"},
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

func TestSecret(t *testing.T) {
	pepper := []byte("0123456789abcdef")
	key := keyfunc.Secret("X-API-Key", pepper)
	a := keyOf(t, key, request("192.0.2.1:1", "X-Api-Key", "sk-live-1"))
	require.Regexp(t, `^~secret:[0-9a-f]{32}$`, a)
	require.Equal(t, a, keyOf(t, key, request("192.0.2.1:1", "X-Api-Key", "sk-live-1")))
	require.NotEqual(t, a, keyOf(t, key, request("192.0.2.1:1", "X-Api-Key", "sk-live-2")))
	require.NotEqual(t, a, keyOf(t, keyfunc.Secret("X-API-Key", []byte("another pepper")), request("192.0.2.1:1", "X-Api-Key", "sk-live-1")))

	unused := keyfunc.Secret("X-API-Key", pepper)
	clear(pepper)
	require.Equal(t, a, keyOf(t, unused, request("192.0.2.1:1", "X-Api-Key", "sk-live-1")), "the pepper is copied")

	for _, values := range [][]string{nil, {""}, {"a", "b"}, {strings.Repeat("a", 128<<10+1)}} {
		k, err := key(request("192.0.2.1:1", "X-Api-Key", values...))
		requireNoKey(t, k, err)
	}
	require.Panics(t, func() { keyfunc.Secret("X-API-Key", nil) })
	require.Panics(t, func() { keyfunc.Secret("X-API-Key", []byte{}) })
}

// RFC 4231 test case 2, cut to 128 bits.
func TestSecretIsHMAC(t *testing.T) {
	key := keyfunc.Secret("X-API-Key", []byte("Jefe"))
	require.Equal(t, "~secret:5bdcc146bf60754e6a042426089575c7",
		keyOf(t, key, request("192.0.2.1:1", "X-Api-Key", "what do ya want for nothing?")))
}

// A credential has one key, however its scheme is written.
func TestSecretScheme(t *testing.T) {
	key := keyfunc.Secret("authorization", []byte("pepper"))
	want := keyOf(t, key, request("192.0.2.1:1", "Authorization", "Bearer abc"))
	for _, same := range []string{"bearer abc", "BEARER abc", "Bearer   abc", "Bearer abc  "} {
		require.Equal(t, want, keyOf(t, key, request("192.0.2.1:1", "Authorization", same)), same)
	}
	for _, other := range []string{"Bearer ABC", "Basic abc", "abc", "Bearer", "Bearer a bc"} {
		require.NotEqual(t, want, keyOf(t, key, request("192.0.2.1:1", "Authorization", other)), other)
	}
}

func TestBasicUser(t *testing.T) {
	login := func(user, password string) *http.Request {
		r := request("192.0.2.1:1", xff)
		r.SetBasicAuth(user, password)
		return r
	}
	key := keyfunc.BasicUser()
	require.Equal(t, "alice", keyOf(t, key, login("alice", "1")))
	require.Equal(t, "alice", keyOf(t, key, login("alice", "2:3")))
	require.Equal(t, "~value:203.0.113.7", keyOf(t, key, login("203.0.113.7", "")))
	require.Regexp(t, "^~value#", keyOf(t, key, login(strings.Repeat("a", 200), "")))
	require.Regexp(t, "^~value#", keyOf(t, key, login("\xff", "")))

	for name, values := range map[string][]string{
		"absent":       nil,
		"other scheme": {"Bearer YTpi"},
		"not base64":   {"Basic !"},
		"no colon":     {"Basic YWI="},
		"empty name":   {"Basic OmI="},
		"repeated":     {"Basic YTpi", "Basic YTpi"},
		"too long":     {"Basic " + strings.Repeat("YWFh", 64<<10) + "OmI="},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := key(request("192.0.2.1:1", "Authorization", values...))
			requireNoKey(t, k, err)
		})
	}
}

func TestHost(t *testing.T) {
	key := keyfunc.Host("example.com", "API.example.com.", "[2001:db8::1]", "localhost")
	for host, want := range map[string]string{
		"example.com":        "example.com",
		"EXAMPLE.com":        "example.com",
		"example.com.":       "example.com",
		"example.com:8080":   "example.com",
		"example.com.:8080":  "example.com",
		"api.example.com":    "api.example.com",
		"[2001:db8::1]":      "[2001:db8::1]",
		"[2001:DB8::1]:8080": "[2001:db8::1]",
		"localhost:0":        "localhost",
	} {
		r := request("192.0.2.1:1", xff)
		r.Host = host
		require.Equal(t, want, keyOf(t, key, r), host)
	}
	for _, host := range []string{"", "evil.com", "example.com.evil.com", "xexample.com", "example.com..", "example.com:x", "example.com:99999", "example.com/", ".", strings.Repeat("a", 64<<10)} {
		r := request("192.0.2.1:1", xff)
		r.Host = host
		k, err := key(r)
		requireNoKey(t, k, err)
	}
	for _, name := range []string{"", ".", "*.example.com", "example.com:80", "a b", "[2001:db8::1]:80", "[nonsense]"} {
		require.Panics(t, func() { keyfunc.Host(name) }, name)
	}
	require.Panics(t, func() { keyfunc.Host() })
}
