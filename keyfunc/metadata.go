package keyfunc

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Metadata is [Header] for gRPC: the value of a metadata key of the call, in
// which case does not matter. Binary values (names that end in -bin) are
// hashed unless they are printable.
//
// It panics if name has a character other than letters, digits, hyphen,
// underscore and dot.
func Metadata(name string) RPC {
	require(validMetadata(name), "Metadata", "the name is empty, or has a character that metadata keys cannot have")
	name = strings.ToLower(name)
	err := noKey("metadata %q is absent, repeated or too long", name)
	return func(ctx context.Context, _ string) (string, error) {
		if v, ok := single(incoming(ctx, name)); ok {
			if key, ok := identity(v); ok {
				return key, nil
			}
		}
		return "", err
	}
}

// incoming are the values of a metadata key, nil if there is none.
func incoming(ctx context.Context, name string) []string {
	return metadata.ValueFromIncomingContext(ctx, name)
}

func validMetadata(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return name != ""
}
