package main

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
)

// replaced writes a file as an orchestrator replaces a secret.
func replaced(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// issuer makes a key set of one key, and a bearer token under it.
func issuer(t *testing.T, id string) (keys []byte, token string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	keys, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256"}}})
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	require.NoError(t, err)
	token, err = jwt.Signed(signer).Claims(map[string]any{"sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	require.NoError(t, err)
	return keys, "Bearer " + token
}

func ask(t *testing.T, url, authorization string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", authorization)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// Keys and tokens in files are followed without a signal. Tokens under replaced keys are
// good for a while, and an operator's old token is not.
func TestSecretsAreFollowed(t *testing.T) {
	dir := t.TempDir()
	keys, admin := filepath.Join(dir, "jwks.json"), filepath.Join(dir, "admin")
	firstKeys, first := issuer(t, "one")
	secondKeys, second := issuer(t, "one") // the same name: the set may be rotated carelessly
	replaced(t, keys, firstKeys)
	replaced(t, admin, []byte("the first token of the page\n"))
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "timeouts: {unready: 0s}\njwt: {keys: {file: "+keys+"}}\nadmin_token: {file: "+admin+"}\nroutes: [{pattern: /, upstream: '"+u+"', missing_key: deny, limits: [{name: a, key: jwt:sub, limit: 1000/h}]}]\n")
	require.Equal(t, 200, ask(t, p.front, first))
	require.Equal(t, 401, ask(t, p.front, second))
	replaced(t, keys, secondKeys)
	require.Eventually(t, func() bool { return ask(t, p.front, second) == 200 }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, 200, ask(t, p.front, first), "the old keys overlap")

	page := func(token string) int { return ask(t, p.admin+"/api/state", "Bearer "+token) }
	open := page("the first token of the page")
	require.NotEqual(t, page("a token that nobody has"), open)
	replaced(t, admin, []byte("the second token of the page\n"))
	require.Eventually(t, func() bool { return page("the second token of the page") == open }, 5*time.Second, 10*time.Millisecond)
	require.NotEqual(t, open, page("the first token of the page"))

	replaced(t, keys, []byte("{}"))
	require.Eventually(t, func() bool { return p.config().Failed != "" }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, 200, ask(t, p.front, second), "a broken set changes nothing")
	replaced(t, keys, firstKeys)
	require.Eventually(t, func() bool { return p.config().Failed == "" }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, 200, ask(t, p.front, second))
}
