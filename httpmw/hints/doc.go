// Package hints reads callers' hints about their requests into the context, where limits find
// them: the class of a request from the Priority field of RFC 9218, and the time after which the
// client gives up.
//
// Trust only known callers: a client that may choose its class chooses the highest.
package hints

import (
	"context"
	"net/http"
	"strings"
)

// serve calls next with a copy of r that has the context ctx. The server and middlewares
// further out get the results that next leaves in the copy: the form, whose files the server
// removes, the pattern and its path values. The copy gets the trailers that net/http adds to r.
func serve(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{}
	}
	inner := r.WithContext(ctx)
	defer func() {
		r.MultipartForm, r.Pattern = inner.MultipartForm, inner.Pattern
		for part := range strings.SplitSeq(r.Pattern, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok && part != "{$}" {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
				r.SetPathValue(name, inner.PathValue(name))
			}
		}
	}()
	next.ServeHTTP(w, inner)
}
