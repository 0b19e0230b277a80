package rpckey

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc"
)

// Metadata is [keyfunc.Header] for gRPC: it keys calls by the value of the metadata
// key name, in any case. Binary values (names that end in -bin) are hashed unless
// they are printable.
//
// It panics if name is empty or has a character other than letters, digits,
// hyphen, underscore and dot.
func Metadata(name string) keyfunc.RPC {
	name = strings.ToLower(name)
	require(validName(name), "Metadata", "the name is empty, or has a character that metadata keys cannot have")
	err := noKey("metadata %q is absent, repeated or too long", name)
	return func(ctx context.Context, _ string) (string, error) {
		if key, ok := keytext.Single(metadata.ValueFromIncomingContext(ctx, name)); ok {
			return key, nil
		}
		return "", err
	}
}

// validName reports whether s is a metadata key in lower case.
func validName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}
