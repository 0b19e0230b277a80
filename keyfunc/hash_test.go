package keyfunc_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestHash(t *testing.T) {
	require.Zero(t, keyfunc.Hash(""))
	require.NotZero(t, keyfunc.Hash("203.0.113.7"))
	require.Equal(t, keyfunc.Hash("203.0.113.7"), keyfunc.Hash("203.0.113.7"))
	require.NotEqual(t, keyfunc.Hash("203.0.113.7"), keyfunc.Hash("203.0.113.8"))
	require.Zero(t, testing.AllocsPerRun(100, func() { keyfunc.Hash("203.0.113.7") }))
}

// All instances of a service that share a pepper give a key the same hash, and
// the key cannot be found without it.
func TestSetHashPepper(t *testing.T) {
	defer keyfunc.ForgetHashPepper()
	own := keyfunc.Hash("alice")
	keyfunc.SetHashPepper([]byte("a secret of the service"))
	require.Equal(t, uint64(0), keyfunc.Hash(""))
	alice := keyfunc.Hash("alice")
	require.NotEqual(t, own, alice)
	require.NotEqual(t, alice, keyfunc.Hash("bob"))

	// By the definition, computed apart.
	derive := hmac.New(sha256.New, []byte("a secret of the service"))
	derive.Write([]byte("keyfunc.Hash"))
	named := hmac.New(sha256.New, derive.Sum(nil))
	named.Write([]byte("alice"))
	require.Equal(t, binary.BigEndian.Uint64(named.Sum(nil)), alice)

	keyfunc.SetHashPepper([]byte("another"))
	require.NotEqual(t, alice, keyfunc.Hash("alice"))
	require.PanicsWithValue(t, "keyfunc: SetHashPepper: the pepper is empty", func() { keyfunc.SetHashPepper(nil) })
}
