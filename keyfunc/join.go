package keyfunc

import (
	"errors"
	"net/http"
	"slices"

	"github.com/sluice-go/sluice/internal/keytext"
)

// Join keys requests by several identities together: requests share a limit if
// they agree in all of them.
//
//	keyfunc.Join(keyfunc.ClientIP(), keyfunc.Route())
//
// Each part is written with its length before it, so two different lists of
// parts never give the same key: neither "a:b" and "c" against "a" and "b:c",
// nor an empty part against none. Parts above 256 bytes are hashed. The result
// looks like "~join/11:203.0.113.7/5:alice".
//
// Join returns the error of the first part that fails: a request that lacks one
// identity has no key. It panics if there is no part, or one is nil.
func Join(parts ...HTTP) HTTP {
	require(len(parts) > 0, "Join", "there are no parts")
	for _, part := range parts {
		require(part != nil, "Join", "a part is nil")
	}
	parts = slices.Clone(parts)
	return func(r *http.Request) (string, error) {
		keys := make([]string, 0, keytext.UsualParts)
		for _, part := range parts {
			key, err := part(r)
			if err != nil {
				return "", err
			}
			keys = append(keys, key)
		}
		return keytext.Join(keys), nil
	}
}

// JoinKeys returns the key that [Join] makes of these keys of its parts:
//
//	limiter.Reset(keyfunc.JoinKeys(keyfunc.Identity("alice"), "GET /items/{id}"))
func JoinKeys(keys ...string) string { return keytext.Join(keys) }

// Or keys requests by the first identity that they have:
//
//	keyfunc.Or(keyfunc.Context(user), keyfunc.ClientIP())
//
// It calls parts in their order, until one returns a key or an error other than [ErrNoKey]. A
// request with none of the identities has no key. A client that can omit an identity chooses
// between two limits: do not give the requests without it the larger one. The functions of this
// package return different keys for different clients, except [Host], whose keys look like any
// name. Or panics if there is no part, or one is nil.
func Or(parts ...HTTP) HTTP {
	require(len(parts) > 0, "Or", "there are no parts")
	for _, part := range parts {
		require(part != nil, "Or", "a part is nil")
	}
	parts = slices.Clone(parts)
	return func(r *http.Request) (key string, err error) {
		for _, part := range parts {
			if key, err = part(r); !errors.Is(err, ErrNoKey) {
				return key, err
			}
		}
		return "", err
	}
}
