package rpckey_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

type userKey struct{}

func userFrom(ctx context.Context) (string, bool) {
	user, ok := ctx.Value(userKey{}).(string)
	return user, ok
}

func TestContext(t *testing.T) {
	key := rpckey.Context(userFrom)
	for user, want := range map[string]string{"alice": "alice", "203.0.113.7": "~value:203.0.113.7"} {
		ctx := context.WithValue(t.Context(), userKey{}, user)
		require.Equal(t, want, rpcKeyOf(t, key, ctx, "/s/m"))
		require.Equal(t, want, keyOf(t, keyfunc.Context(userFrom), request("192.0.2.1:1").WithContext(ctx)))
	}
	for _, ctx := range []context.Context{t.Context(), context.WithValue(t.Context(), userKey{}, "")} {
		k, err := key(ctx, "/s/m")
		requireNoKey(t, k, err)
	}
	require.Panics(t, func() { rpckey.Context(nil) })
}

func TestGlobal(t *testing.T) {
	require.Equal(t, keyOf(t, keyfunc.Global(), request("192.0.2.1:1")), rpcKeyOf(t, rpckey.Global(), t.Context(), "/s/m"))
}
