package keyfunc_test

import (
	"encoding/base64"
	"net/http"
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

// TestSecretSpellingsOfAJWT: with a space or a new line in its header, without Bearer, and in
// any field.
func TestSecretSpellingsOfAJWT(t *testing.T) {
	for _, header := range []string{`{"alg":"none"}`, `{ "alg": "none" }`, "{\n \"alg\": \"none\"}", "\n{}"} {
		jwt := base64.RawURLEncoding.EncodeToString([]byte(header)) + ".e30."
		for _, scheme := range []string{"Bearer ", "DPoP ", "JWT ", ""} {
			for _, field := range []string{"Authorization", "X-Access-Token"} {
				key := keyfunc.Secret(field, []byte("pepper"))
				of := func(signature string) string {
					return keyOf(t, key, request("192.0.2.1:1", field, scheme+jwt+signature))
				}
				if scheme != "" && field != "Authorization" {
					require.NotEqual(t, of("QQ"), of("QR"), "no field with a scheme")
					continue
				}
				require.NotEqual(t, of("QQ"), of("Qg"))
				for _, same := range []string{"QR", "Qf", "QQ=="} {
					require.Equal(t, of("QQ"), of(same), "%s: %s%s%s", field, scheme, header, same)
				}
			}
		}
	}
}

// A credential has one key, however it is written.
func TestSecretSpellings(t *testing.T) {
	key := keyfunc.Secret("authorization", []byte("pepper"))
	authorization := func(values ...string) *http.Request { return request("192.0.2.1:1", "Authorization", values...) }
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9." // with a signature of one byte
	for _, row := range [][]string{
		{"Bearer abc", "bearer abc", "BEARER abc", "Bearer   abc", "Bearer abc  ", "Bearer\tabc", "Bearer \t abc"},
		{"Basic dXNlcjpwYXNzMQ==", "basic dXNlcjpwYXNzMR==", "Basic dXNlcjpwYXNzMS==", "Basic dXNlcjpwYXNzMf==", "Basic dXNlcjpwYXNzMQ"},
		{"Bearer " + jwt + "QQ", "Bearer " + jwt + "QR", "Bearer " + jwt + "Qf", "Bearer " + jwt + "QQ=="},
		{"Bearer " + jwt[:20] + strings.Repeat("A", 3) + ".e30.QQ", "Bearer " + jwt[:20] + strings.Repeat("A", 3) + ".e31.QQ"},
	} {
		want := keyOf(t, key, authorization(row[0]))
		for _, same := range row {
			require.Equal(t, want, keyOf(t, key, authorization(same)), same)
			require.Equal(t, want, keyOf(t, key, authorization(same, row[0], same)), "doubled")
		}
	}
	seen := map[string]string{}
	for _, other := range []string{
		"Bearer abc", "Bearer ABC", "Bearer abd", "abc", "ABC", "Bearer", "Bearer a bc", "Bearer a.b.c", "Bearer a.b.d", "Bearer token-1", "Bearer token-2",
		"Basic dXNlcjpwYXNzMQ==", "Basic dXNlcjpwYXNzMg==", "Bearer dXNlcjpwYXNzMQ==", "Bearer dXNlcjpwYXNzMR==", "Bearer " + jwt + "QQ", "Bearer " + jwt + "Qg",
		"Bearer " + jwt + "not base64", "Token abc",
	} {
		k := keyOf(t, key, authorization(other))
		require.Empty(t, seen[k], other)
		seen[k] = other
	}
	for _, values := range [][]string{{"Basic !"}, {"Bearer a", "Bearer b"}, {"Bearer a", ""}, {"", ""}, {"Basic dXNlcjpwYXNzMQ==", "Basic !"}} {
		k, err := key(authorization(values...))
		requireNoKey(t, k, err)
	}
}
