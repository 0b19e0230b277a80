package rpckey

import (
	"context"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

var errNoIdentity = noKey("no identity in the context")

// Context is [keyfunc.Context] for gRPC: it keys calls by the identity that
// authentication has put into their context. It panics if get is nil.
func Context(get func(context.Context) (string, bool)) keyfunc.RPC {
	require(get != nil, "Context", "the function is nil")
	return func(ctx context.Context, _ string) (string, error) {
		if v, ok := get(ctx); ok {
			if key, ok := keytext.Value(v); ok {
				return key, nil
			}
		}
		return "", errNoIdentity
	}
}

// Global is [keyfunc.Global] for gRPC: the empty key for every call.
func Global() keyfunc.RPC {
	return func(context.Context, string) (string, error) { return "", nil }
}
