package rpckey_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// constant is a user's own key function.
func constant(key string, err error) keyfunc.RPC {
	return func(context.Context, string) (string, error) { return key, err }
}

// The same parts give the same key over both transports.
func TestS1_JoinAgreesWithHTTP(t *testing.T) {
	for _, parts := range [][]string{{""}, {"a"}, {"a:b", "c"}, {"a", "b:c"}, {"1:a/1:b"}, {strings.Repeat("x", 300), "y"}, {"a", "b", "c", "d", "e"}} {
		var rpcs []keyfunc.RPC
		var https []keyfunc.HTTP
		for _, p := range parts {
			rpcs = append(rpcs, constant(p, nil))
			https = append(https, func(*http.Request) (string, error) { return p, nil })
		}
		require.Equal(t, keyOf(t, keyfunc.Join(https...), request("192.0.2.1:1")), rpcKeyOf(t, rpckey.Join(rpcs...), t.Context(), "/s/m"))
	}
}

func TestJoinErrors(t *testing.T) {
	for name, err := range map[string]error{"no key": keyfunc.ErrNoKey, "other": errors.New("broken")} {
		k, got := rpckey.Join(rpckey.Global(), constant("half", err))(t.Context(), "/s/m")
		require.ErrorIs(t, got, err, name)
		require.Empty(t, k, name)
	}
	require.Panics(t, func() { rpckey.Join() })
	require.Panics(t, func() { rpckey.Join(nil) })
}

// Changing the list afterwards does not change the key function.
func TestJoinCopiesItsParts(t *testing.T) {
	parts := []keyfunc.RPC{constant("a", nil), constant("b", nil)}
	key := rpckey.Join(parts...)
	parts[0] = nil
	require.Equal(t, "~join/1:a/1:b", rpcKeyOf(t, key, t.Context(), "/s/m"))
}

// Or asks until there is an identity, and stops at a failure.
func TestOr(t *testing.T) {
	broken := errors.New("broken")
	none := constant("", keyfunc.ErrNoKey)
	require.Equal(t, "b", rpcKeyOf(t, rpckey.Or(none, constant("b", nil), constant("c", nil)), t.Context(), "/s/m"))
	for want, key := range map[error]keyfunc.RPC{
		keyfunc.ErrNoKey: rpckey.Or(none, none), broken: rpckey.Or(none, constant("", broken), constant("c", nil)),
	} {
		_, err := key(t.Context(), "/s/m")
		require.ErrorIs(t, err, want)
	}
	require.Panics(t, func() { rpckey.Or() })
	require.Panics(t, func() { rpckey.Or(nil) })
}
