package keyfunc

import (
	"net/http"

	"github.com/sluice-go/sluice/internal/keytext"
	"github.com/sluice-go/sluice/keyfunc/internal/clientip"
)

// Header keys requests by the value of a header. The client chooses it, so by
// itself it limits no client: use it if something in front of this server sets or
// checks the header. For credentials use [Secret], for addresses [IPConfig].
//
// The key is the value, as [Identity] writes it: unchanged, unless it is the
// key of something else, longer than 128 bytes, or not printable.
//
// An absent or empty header, one longer than 128 KiB, and one with several
// lines, of which this server and others may each use a different one, are
// [ErrNoKey].
//
// It panics if name is not a header name, and for Host, which net/http does
// not keep among the headers; see the function [Host].
func Header(name string) HTTP {
	requireHeader("Header", name)
	name = http.CanonicalHeaderKey(name)
	err := noKey("header %q is absent, repeated or too long", name)
	return func(r *http.Request) (string, error) {
		if key, ok := keytext.Single(r.Header[name]); ok {
			return key, nil
		}
		return "", err
	}
}

// requireHeader panics unless net/http keeps a header of that name among the headers.
func requireHeader(constructor, name string) {
	problem := clientip.HeaderProblem(name)
	require(problem == "", constructor, "the header name "+problem)
}
