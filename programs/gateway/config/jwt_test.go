package config_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// Replaced keys are good for five minutes, through further changes too.
func TestRetiredKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	from := config.JWT{Keys: config.Secret{File: path}}
	issue := func(seed byte) (keys []byte, token string) {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), seed))
		keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: string('a' + seed)}}})
		require.NoError(t, err)
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", string('a'+seed)))
		require.NoError(t, err)
		token, err = jwt.Signed(signer).Claims(map[string]any{"sub": "alice"}).Serialize()
		require.NoError(t, err)
		return keys, token
	}
	synctest.Test(t, func(t *testing.T) {
		var tokens *config.Tokens
		open := func(keys []byte) {
			require.NoError(t, os.WriteFile(path, keys, 0o600))
			var err error
			tokens, err = from.Open(tokens)
			require.NoError(t, err)
		}
		good := func(token string) bool {
			key, err := config.Callers{Tokens: tokens}.KeyFunc([]config.Key{{Kind: "jwt", Name: "sub"}})
			require.NoError(t, err)
			got, _ := key(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
			return got == "alice"
		}
		one, first := issue(1)
		two, second := issue(2)
		open(one)
		require.True(t, good(first))
		require.False(t, good(second))
		open(two)
		require.True(t, good(first) && good(second))
		time.Sleep(4 * time.Minute)
		open(two) // another change of the file
		require.True(t, good(first) && good(second))
		time.Sleep(2 * time.Minute)
		require.False(t, good(first))
		require.True(t, good(second))
	})
}
