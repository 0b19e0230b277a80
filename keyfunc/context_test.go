package keyfunc_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
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
		if want == "" {
			requireNoKey(t, k, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, k)
	}
	k, err := keyfunc.Context(userFrom)(request("192.0.2.1:1", xff))
	requireNoKey(t, k, err)
	require.Panics(t, func() { keyfunc.Context(nil) })
}
