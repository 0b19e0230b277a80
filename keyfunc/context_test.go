package keyfunc_test

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

type userKey struct{}

func userFrom(ctx context.Context) (string, bool) {
	user, ok := ctx.Value(userKey{}).(string)
	return user, ok
}

func TestContext(t *testing.T) {
	for user, want := range map[string]string{
		"alice":       "alice",
		"203.0.113.7": "~value:203.0.113.7",
		"":            "",
	} {
		ctx := context.WithValue(t.Context(), userKey{}, user)
		k, err := keyfunc.Context(userFrom)(request("192.0.2.1:1", xff).WithContext(ctx))
		rpc, rpcErr := keyfunc.RPCContext(userFrom)(ctx, "/s/m")
		if want == "" {
			requireNoKey(t, k, err)
			requireNoKey(t, rpc, rpcErr)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, k)
		require.NoError(t, rpcErr)
		require.Equal(t, want, rpc)
	}
	k, err := keyfunc.Context(userFrom)(request("192.0.2.1:1", xff))
	requireNoKey(t, k, err)
	k, err = keyfunc.RPCContext(userFrom)(t.Context(), "/s/m")
	requireNoKey(t, k, err)
	require.Panics(t, func() { keyfunc.Context(nil) })
	require.Panics(t, func() { keyfunc.RPCContext(nil) })
}

func TestGlobal(t *testing.T) {
	a := keyOf(t, keyfunc.Global(), request("192.0.2.1:1", xff))
	require.NotEmpty(t, a)
	require.Equal(t, a, keyOf(t, keyfunc.Global(), request("192.0.2.2:1", xff, "x")))
	require.Equal(t, a, rpcKeyOf(t, keyfunc.RPCGlobal(), t.Context(), "/s/m"))
}
