package rpckey

import (
	"context"
	"strings"

	"github.com/sluice-go/sluice/keyfunc"
)

// maxMethod bounds the bytes of a method that is a key.
const maxMethod = 512

var errNoMethod = noKey("the method is not of the form /service/method")

// FullMethod keys calls by their method: "/package.Service/Method". Anything not
// of that form, longer than 512 bytes, or with characters other than printable
// ASCII, is [keyfunc.ErrNoKey].
//
// A server with grpc.UnknownServiceHandler, and a tap handle, also see
// unregistered methods, whose names clients choose.
func FullMethod() keyfunc.RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if serviceOf(fullMethod) == "" {
			return "", errNoMethod
		}
		return fullMethod, nil
	}
}

// Service keys calls by their service: "package.Service". A user of that name has the same key: in a
// limiter for both, use Join(Service()). Its errors are those of [FullMethod].
func Service() keyfunc.RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if s := serviceOf(fullMethod); s != "" {
			return s, nil
		}
		return "", errNoMethod
	}
}

// serviceOf returns the text between the first and the last slash, or "" if it or
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
