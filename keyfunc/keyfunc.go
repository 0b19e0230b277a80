package keyfunc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// HTTP says whom a request belongs to: requests with equal keys share a
// limit. It is called once per request, from many goroutines at once, and
// never reads the request body.
//
// A request without the identity that was asked for gives "" and an error
// that wraps [ErrNoKey]. The caller decides what becomes of it.
//
// A function of one's own may return any string. Strings that begin with '~'
// are the names of this package; see the package comment.
type HTTP func(*http.Request) (string, error)

// RPC is the twin of [HTTP] for gRPC. The context is that of the call on the
// server, fullMethod is "/package.Service/Method".
type RPC func(ctx context.Context, fullMethod string) (string, error)

// ErrNoKey says that the identity asked for is not there: an absent header,
// an unverified certificate, a peer without an address. Errors that wrap it
// never contain anything the client sent. Compare with [errors.Is].
var ErrNoKey = errors.New("keyfunc: no key")

// noKey makes an error that wraps ErrNoKey. It is called when a key function
// is built, never on a request, so a flood of keyless requests allocates
// nothing.
func noKey(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoKey}, args...)...)
}

// must turns the error of a constructor into a panic for the short forms,
// which have no error result: a limiter with a broken key must not start.
func must[F any](f F, err error) F {
	if err != nil {
		panic(err.Error())
	}
	return f
}

// require panics with the name of the constructor unless ok.
func require(ok bool, constructor, what string) {
	if !ok {
		panic("keyfunc: " + constructor + ": " + what)
	}
}
