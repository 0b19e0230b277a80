package rpckey_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestMetadata(t *testing.T) {
	key := rpckey.Metadata("X-Tenant")
	for value, want := range map[string]string{
		"acme":        "acme",
		"203.0.113.7": "~value:203.0.113.7",
		"\xff":        "~value#a8100ae6aa1940d0b663bb31cd466142",
	} {
		require.Equal(t, want, rpcKeyOf(t, key, call(nil, "x-tenant", value), "/s/m"))
	}
	for name, ctx := range map[string]context.Context{
		"no metadata": context.Background(),
		"absent":      call(nil, "x-other", "a"),
		"empty":       call(nil, "x-tenant", ""),
		"repeated":    call(nil, "x-tenant", "a", "x-tenant", "b"),
		"outgoing":    metadata.AppendToOutgoingContext(context.Background(), "x-tenant", "a"),
	} {
		t.Run(name, func(t *testing.T) {
			k, err := key(ctx, "/s/m")
			requireNoKey(t, k, err)
		})
	}
	for _, name := range []string{"", ":authority", "a b", "ä"} {
		require.Panics(t, func() { rpckey.Metadata(name) }, name)
	}
}
