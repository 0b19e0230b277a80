package keyfunc

import (
	"context"
	"net/http"

	"github.com/sluice-go/sluice/internal/keytext"
)

var errNoIdentity = noKey("no identity in the context")

// Context keys requests by the identity that authentication has put into their
// context. get returns it, and false if it is absent; each request calls get once.
// The limiter must come after the authentication.
//
//	keyfunc.Context(func(ctx context.Context) (string, bool) {
//		user, ok := auth.UserFrom(ctx)
//		return user.ID, ok
//	})
//
// The key is the identity, as [Identity] writes it. An absent or empty one is
// [ErrNoKey]. It panics if get is nil.
func Context(get func(context.Context) (string, bool)) HTTP {
	require(get != nil, "Context", "the function is nil")
	return func(r *http.Request) (string, error) {
		if v, ok := get(r.Context()); ok {
			if key, ok := keytext.Value(v); ok {
				return key, nil
			}
		}
		return "", errNoIdentity
	}
}
