package rpckey

import (
	"context"
	"errors"
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

// Or is [keyfunc.Or] for gRPC.
func Or(parts ...keyfunc.RPC) keyfunc.RPC {
	require(len(parts) > 0, "Or", "there are no parts")
	for _, part := range parts {
		require(part != nil, "Or", "a part is nil")
	}
	parts = slices.Clone(parts)
	return func(ctx context.Context, fullMethod string) (key string, err error) {
		for _, part := range parts {
			if key, err = part(ctx, fullMethod); !errors.Is(err, keyfunc.ErrNoKey) {
				return key, err
			}
		}
		return "", err
	}
}
