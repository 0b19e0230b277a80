package keyfunc

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

const (
	// joinTag begins each joined key.
	joinTag = "~join"
	// maxPart is the longest part, in bytes, that stands in a joined key.
	maxPart = 256
	// usualParts is how many parts need no allocation for their list.
	usualParts = 4
)

// Join is the key of several identities together: requests share a limit if
// they agree in all of them.
//
//	keyfunc.Join(keyfunc.ClientIP(), keyfunc.Route())
//
// Each part is written with its length before it, so two different lists of
// parts never give the same key: neither "a:b" and "c" against "a" and "b:c",
// nor an empty part against none. Parts above 256 bytes are hashed. The result
// looks like "~join/11:203.0.113.7/5:alice".
//
// The error of the first part that fails is the result: a request that lacks
// one of the identities has no key. It panics if there is no part, or one is
// nil.
func Join(parts ...HTTP) HTTP {
	require(len(parts) > 0, "Join", "there are no parts")
	for _, part := range parts {
		require(part != nil, "Join", "a part is nil")
	}
	parts = append([]HTTP(nil), parts...)
	return func(r *http.Request) (string, error) {
		keys := make([]string, 0, usualParts)
		for _, part := range parts {
			key, err := part(r)
			if err != nil {
				return "", err
			}
			keys = append(keys, key)
		}
		return join(keys), nil
	}
}

// RPCJoin is [Join] for gRPC. The same parts give the same key.
func RPCJoin(parts ...RPC) RPC {
	require(len(parts) > 0, "RPCJoin", "there are no parts")
	for _, part := range parts {
		require(part != nil, "RPCJoin", "a part is nil")
	}
	parts = append([]RPC(nil), parts...)
	return func(ctx context.Context, fullMethod string) (string, error) {
		keys := make([]string, 0, usualParts)
		for _, part := range parts {
			key, err := part(ctx, fullMethod)
			if err != nil {
				return "", err
			}
			keys = append(keys, key)
		}
		return join(keys), nil
	}
}

// join writes parts so that they can be read back: after the tag, "/", the
// length in decimal, ":" and that many bytes; or "/#" and 32 hexadecimal
// digits of SHA-256.
func join(parts []string) string {
	size := len(joinTag)
	for _, p := range parts {
		size += min(len(p), maxPart) + len("/256:")
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(joinTag)
	for _, p := range parts {
		b.WriteByte('/')
		if len(p) > maxPart {
			b.WriteByte('#')
			b.WriteString(digest(p))
			continue
		}
		var digits [4]byte
		b.Write(strconv.AppendInt(digits[:0], int64(len(p)), 10))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return b.String()
}
