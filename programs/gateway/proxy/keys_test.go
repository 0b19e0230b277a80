package proxy_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// Each kind of key distinguishes callers, and requests without a key get 401.
func TestKeyKinds(t *testing.T) {
	r := newRig(t, `
routes:
  - {pattern: /cookie, upstream: UPSTREAM, missing_key: deny, limits: [{name: cookie, key: "cookie:session", limit: 1/h}]}
  - {pattern: /query, upstream: UPSTREAM, missing_key: deny, limits: [{name: query, key: "query:user", limit: 1/h}]}
  - {pattern: "/path/{tenant}/{rest...}", upstream: UPSTREAM, missing_key: deny, limits: [{name: path, key: "path:tenant", limit: 1/h}]}
  - {pattern: /method, upstream: UPSTREAM, limits: [{name: method, key: method, limit: 1/h}]}
`, ok)
	for _, test := range []struct {
		name          string
		first, second []string // path and headers
	}{
		{"cookie", []string{"/cookie", "Cookie", "session=a"}, []string{"/cookie", "Cookie", "session=b"}},
		{"query", []string{"/query?user=a"}, []string{"/query?user=b"}},
		{"path", []string{"/path/a/x"}, []string{"/path/b/x"}},
	} {
		require.Equal(t, 200, r.status(test.first[0], test.first[1:]...), test.name)
		require.Equal(t, 429, r.status(test.first[0], test.first[1:]...), test.name)
		require.Equal(t, 200, r.status(test.second[0], test.second[1:]...), test.name)
	}
	require.Equal(t, 429, r.status("/path/a/y"))
	for _, path := range []string{"/cookie", "/query", "/query?user=", "/query?user=c&user=d"} {
		require.Equal(t, 401, r.status(path), path)
	}
	require.Equal(t, 401, r.status("/cookie", "Cookie", "session=c; session=d"))
	for _, other := range []string{`session=c; session="\141"`, `session=c, session=a`, `x="; session=c; session=a"`} {
		require.Equal(t, 401, r.status("/cookie", "Cookie", other), "an upstream may read another one than %s", other)
	}
	require.Equal(t, 200, r.status("/method"))
	require.Equal(t, 429, r.status("/method"))
	resp, err := http.Post(r.front.URL+"/method", "", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)
}

// signer makes tokens.
type signer struct {
	t   *testing.T
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return signer{t, key}
}

func (s signer) token(claims any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, (&jose.SignerOptions{}).WithHeader("kid", "k1"))
	require.NoError(s.t, err)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	require.NoError(s.t, err)
	return "Bearer " + text
}

// A claim is a key only if the token is signed by a key of the file, is valid
// now, and is for this service.
func TestJWT(t *testing.T) {
	own, foreign := newSigner(t), newSigner(t)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: own.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, keys, 0o600))
	r := newRig(t, `
jwt: {keys: {file: `+path+`}, issuer: "https://id.example", audience: shop}
routes:
  - {pattern: /, upstream: UPSTREAM, missing_key: deny, limits: [{name: user, key: "jwt:sub", limit: 1/h}]}
  - {pattern: /plan, upstream: UPSTREAM, limits: [{name: plan, key: ["jwt:plan", "jwt:sub"], limit: 1/h}]}
`, ok)
	later := time.Now().Add(time.Hour).Unix()
	claims := func(change map[string]any) map[string]any {
		all := map[string]any{"iss": "https://id.example", "aud": []string{"shop"}, "sub": "alice", "exp": later, "plan": 7}
		for k, v := range change {
			all[k] = v
		}
		return all
	}
	alice := own.token(claims(nil))
	require.Equal(t, 200, r.status("/", "Authorization", alice))
	require.Equal(t, 429, r.status("/", "Authorization", own.token(claims(map[string]any{"jti": "another"}))), "another token of the same user")
	require.Equal(t, 200, r.status("/", "Authorization", own.token(claims(map[string]any{"sub": "bob"}))))
	require.Equal(t, 200, r.status("/plan", "Authorization", alice))
	require.Equal(t, 429, r.status("/plan", "Authorization", alice))
	for _, plan := range []int64{9007199254740992, 9007199254740993} {
		require.Equal(t, 200, r.status("/plan", "Authorization", own.token(claims(map[string]any{"plan": plan}))), "numbers beyond the precision of a float64 are two users")
	}
	for name, token := range map[string]string{
		"none":           "",
		"no token":       "Bearer x.y.z",
		"another scheme": "Basic " + alice[7:],
		"another key":    foreign.token(claims(nil)),
		"expired":        own.token(claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})),
		"not yet":        own.token(claims(map[string]any{"nbf": later})),
		"another issuer": own.token(claims(map[string]any{"iss": "https://evil.example"})),
		"for another":    own.token(claims(map[string]any{"aud": "bank"})),
		"no such claim":  own.token(claims(map[string]any{"sub": nil})),
		"unsigned":       "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9.",
	} {
		resp := r.get("/", "Authorization", token)
		require.Equal(t, 401, resp.StatusCode, name)
		require.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
	}
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	err = r.gateway.Apply(r.parse("jwt: {keys: {file: " + path + "}}\nroutes: [{pattern: /, upstream: UPSTREAM}]"))
	require.ErrorContains(t, err, "f:1:7: jwt.keys: the JSON Web Key Set has no keys")
}

// An operator's name for a caller leads to the key that its requests have.
func TestIdentities(t *testing.T) {
	kinds := []config.Key{{Kind: "ip"}, {Kind: "method"}, {Kind: "header", Name: "X-User"}, {Kind: "cookie", Name: "c"}, {Kind: "query", Name: "q"}, {Kind: "path", Name: "p"}, {Kind: "route"}, {Kind: "secret", Name: "X-Key"}, {Kind: "global"}}
	callers := config.Callers{Pepper: []byte("0123456789abcdef")}
	id, err := callers.Identity(kinds)
	require.NoError(t, err)
	require.Equal(t, []string{"address", "method", "header X-User", "cookie c", "query q", "path p", "route", "header X-Key"}, id.Parts)
	got, err := id.Key([]string{"2001:db8::/64", "GET", "ann", "1", "a b&c", "x/y", "GET /{p}", "s3cret"})
	require.NoError(t, err)

	f, err := callers.KeyFunc(kinds)
	require.NoError(t, err)
	r, err := http.NewRequest("GET", "http://h/x?q=a+b%26c", nil)
	require.NoError(t, err)
	r.RemoteAddr, r.Pattern = "[2001:db8::7]:4711", "GET /{p}"
	r.Header = http.Header{"X-User": {"ann"}, "X-Key": {"s3cret"}, "Cookie": {"c=1"}}
	r.SetPathValue("p", "x/y")
	want, err := f(r)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = id.Key([]string{"10.0.0", "GET", "ann", "1", "a", "x", "r", "s"})
	require.ErrorContains(t, err, `"10.0.0" is not an address`)
	_, err = id.Key([]string{"10.0.0.1", "GET", "", "1", "a", "x", "r", "s"})
	require.ErrorContains(t, err, "no request with these values has a key")
}
