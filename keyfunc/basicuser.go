package keyfunc

import (
	"net/http"
	"strings"
)

var errNoUser = noKey("no user name in the Authorization header")

// BasicUser is the user name of HTTP Basic authentication (RFC 7617), which
// is not verified: it is for limiting attempts to log in, per account. Behind
// the verification, prefer [Context].
//
// The name becomes a key as a value of [Header] does; names are compared byte
// by byte, so where the login ignores case, "Bob" and "bob" have two limits
// here. Requests without Basic credentials, with several Authorization lines,
// or with an empty name are [ErrNoKey].
func BasicUser() HTTP {
	return func(r *http.Request) (string, error) {
		if v, ok := single(r.Header["Authorization"]); !ok || len(v) > maxValue {
			return "", errNoUser
		}
		name, _, _ := r.BasicAuth()
		key, ok := identity(name)
		if !ok {
			return "", errNoUser
		}
		// The name shares its memory with the password; the key does not.
		return strings.Clone(key), nil
	}
}
