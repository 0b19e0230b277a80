package keyfunc

import (
	"context"
	"strings"
)

// maxMethod is the longest method, in bytes, that is used as a key.
const maxMethod = 512

var errNoMethod = noKey("the method is not of the form /service/method")

// FullMethod is the method of the call: "/package.Service/Method". Anything
// not of that form, longer than 512 bytes, or with other characters than
// printable ASCII, is [ErrNoKey].
//
// A server with grpc.UnknownServiceHandler, and a tap handle, also see methods
// that are not registered, whose names clients make up.
func FullMethod() RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if serviceOf(fullMethod) == "" {
			return "", errNoMethod
		}
		return fullMethod, nil
	}
}

// Service is the service of the call: "package.Service". Errors are those of
// [FullMethod].
func Service() RPC {
	return func(_ context.Context, fullMethod string) (string, error) {
		if s := serviceOf(fullMethod); s != "" {
			return s, nil
		}
		return "", errNoMethod
	}
}

// serviceOf is what stands between the first and the last slash, or "" if
// that, or the method, is missing or cannot be a name.
func serviceOf(fullMethod string) string {
	if len(fullMethod) > maxMethod || !strings.HasPrefix(fullMethod, "/") {
		return ""
	}
	i := strings.LastIndexByte(fullMethod, '/')
	if i < 1 || i == len(fullMethod)-1 || strings.ContainsFunc(fullMethod, notGraphic) {
		return ""
	}
	return fullMethod[1:i]
}

func notGraphic(r rune) bool { return r <= ' ' || r > '~' }
