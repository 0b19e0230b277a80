package keyfunc

import (
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/internal/keytext"
)

var errNoUser = noKey("no user name in the Authorization header")

// BasicUser keys requests by the user name of HTTP Basic authentication (RFC 7617),
// unverified: use it to limit login attempts per account. Behind the verification,
// prefer [Context].
//
// The key is the name, as [Identity] writes it, byte by byte: "Bob" and "bob" have two
// limits, even if the login ignores case. Requests without Basic credentials, with
// several Authorization lines, or with an empty name are [ErrNoKey].
func BasicUser() HTTP {
	return func(r *http.Request) (string, error) {
		if values := r.Header["Authorization"]; len(values) != 1 || len(values[0]) > keytext.MaxValue {
			return "", errNoUser
		}
		name, _, _ := r.BasicAuth()
		key, ok := keytext.Value(name)
		if !ok {
			return "", errNoUser
		}
		// The name shares its memory with the password; the key does not.
		return strings.Clone(key), nil
	}
}
