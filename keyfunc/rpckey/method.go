package rpckey

import (
	"context"
	"strings"

	"github.com/sluice-go/sluice/keyfunc"
)

// maxMethod is the longest method, in bytes, that is a key.
const maxMethod = 512

var errNoMethod = noKey("the method is not of the form /service/method")

// FullMethod is the method of the call: "/package.Service/Method". Anything
// not of that form, longer than 512 bytes, or with characters other than
// printable ASCII, is [keyfunc.ErrNoKey].
//
// A server with grpc.UnknownServiceHandler, and a tap handle, also see methods
// that are not registered, whose names are chosen by clients.
func FullMethod() keyfunc.RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if serviceOf(fullMethod) == "" {
			return "", errNoMethod
		}
		return fullMethod, nil
	}
}

// Service is the service of the call: "package.Service". A user of that name has the same key: in a
// limiter for both, use Join(Service()). Errors are the same as of [FullMethod].
func Service() keyfunc.RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if s := serviceOf(fullMethod); s != "" {
			return s, nil
		}
		return "", errNoMethod
	}
}

// serviceOf is the text between the first and the last slash, or "" if it or
// the method is missing or malformed.
func serviceOf(fullMethod string) string {
	if len(fullMethod) > maxMethod || !strings.HasPrefix(fullMethod, "/") {
		return ""
	}
	i := strings.LastIndexByte(fullMethod, '/')
	if i < 1 || i == len(fullMethod)-1 {
		return ""
	}
	for j := range len(fullMethod) { // strings.ContainsFunc takes four times as long: BenchmarkUnaryServer
		if c := fullMethod[j]; c <= ' ' || c > '~' {
			return ""
		}
	}
	return fullMethod[1:i]
}
