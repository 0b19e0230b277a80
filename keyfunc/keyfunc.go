package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// HTTP returns the key of a request: requests with equal keys share a limit.
// The middleware calls it concurrently, once per request. It must not read the
// request body.
//
// For a request without the identity that it looks for it returns "" and an error
// that wraps [ErrNoKey]; the middleware decides how to limit such a request.
//
// A function of your own may return any string, except that strings with the
// prefix '~' are reserved for this package; see the package comment.
type HTTP func(*http.Request) (string, error)

// RPC is [HTTP] for gRPC. The context is the context of the call on the server,
// fullMethod is "/package.Service/Method". Package rpckey has the constructors.
type RPC func(ctx context.Context, fullMethod string) (string, error)

// ErrNoKey reports that a request has no identity: an absent header, an
// unverified certificate, a peer without an address. Errors that wrap it never
// contain anything from the request. Compare with [errors.Is].
var ErrNoKey = errors.New("keyfunc: no key")

// noKey makes an error that wraps ErrNoKey. Call it when a key function is built,
// never on a request, so that a flood of requests without a key allocates nothing.
func noKey(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoKey}, args...)...)
}

// must panics with the error of a constructor, for the forms without an error
// result: a limiter with a broken key function must not start.
func must[F any](f F, err error) F {
	if err != nil {
		panic(err.Error())
	}
	return f
}

// require panics with the name of the constructor unless ok.
func require(ok bool, constructor, problem string) {
	if !ok {
		panic("keyfunc: " + constructor + ": " + problem)
	}
}
