package keyfunc

import (
	"context"
	"net/http"
)

var errNoIdentity = noKey("no identity in the context")

// Context is the identity that authentication has put into the context of the
// request. get fetches it and reports whether it is there; it is called once
// per request. The limiter must come after the authentication.
//
//	keyfunc.Context(func(ctx context.Context) (string, bool) {
//		user, ok := auth.UserFrom(ctx)
//		return user.ID, ok
//	})
//
// The identity becomes a key as a value of [Header] does. None, or an empty
// one, is [ErrNoKey]. It panics if get is nil.
func Context(get func(context.Context) (string, bool)) HTTP {
	require(get != nil, "Context", "the function is nil")
	return func(r *http.Request) (string, error) { return fromContext(r.Context(), get) }
}

// RPCContext is [Context] for gRPC.
func RPCContext(get func(context.Context) (string, bool)) RPC {
	require(get != nil, "RPCContext", "the function is nil")
	return func(ctx context.Context, _ string) (string, error) { return fromContext(ctx, get) }
}

func fromContext(ctx context.Context, get func(context.Context) (string, bool)) (string, error) {
	v, ok := get(ctx)
	if !ok {
		return "", errNoIdentity
	}
	key, ok := identity(v)
	if !ok {
		return "", errNoIdentity
	}
	return key, nil
}
