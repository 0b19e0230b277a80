package rpckey

import (
	"context"
	"slices"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

// Join is [keyfunc.Join] for gRPC. The same parts give the same key.
func Join(parts ...keyfunc.RPC) keyfunc.RPC {
	require(len(parts) > 0, "Join", "there are no parts")
	for _, part := range parts {
		require(part != nil, "Join", "a part is nil")
	}
	parts = slices.Clone(parts)
	return func(ctx context.Context, fullMethod string) (string, error) {
		keys := make([]string, 0, keytext.UsualParts)
		for _, part := range parts {
			key, err := part(ctx, fullMethod)
			if err != nil {
				return "", err
			}
			keys = append(keys, key)
		}
		return keytext.Join(keys), nil
	}
}
