package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

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
