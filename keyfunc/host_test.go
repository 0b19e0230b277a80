package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

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
