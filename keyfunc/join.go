package keyfunc

import (
	"errors"
	"net/http"
	"slices"

	"github.com/sluice-go/sluice/internal/keytext"
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

// JoinKeys is the key that [Join] makes of requests whose parts have these keys:
//
//	limiter.Reset(keyfunc.JoinKeys(keyfunc.Identity("alice"), "GET /items/{id}"))
func JoinKeys(keys ...string) string { return keytext.Join(keys) }

// Or is the key of the first identity that a request has:
//
//	keyfunc.Or(keyfunc.Context(user), keyfunc.ClientIP())
//
// It asks the parts in their order, until one gives a key or an error that is no [ErrNoKey]. A
// request with none of the identities has no key. A client that can leave an identity out
// chooses between two limits: give the requests without it the smaller one, or one of the same
// size. The functions of this package do not give equal keys for different clients, except
// [Host], whose keys look like any name. Or panics if there is no part, or one is nil.
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
