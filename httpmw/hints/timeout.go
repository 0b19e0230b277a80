package hints

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// Timeout makes a middleware that ends the context of a request when its client gives up: after
// the whole milliseconds in the request header field, such as X-Envoy-Expected-Rq-Timeout-Ms.
// Mount it around httpmw.Limit:
//
//	handler = hints.Timeout("X-Envoy-Expected-Rq-Timeout-Ms")(httpmw.Limit(l, key)(handler))
//
// An adaptive limit denies a request that would take longer, see [adaptive.Limiter.Acquire];
// other limits do not wait longer; and the handler's calls end in time. The context keeps an
// earlier deadline, so a client can only shorten its own request. Timeout ignores a value that is
// not a number from 0 to 4294967295.
//
// httpmw reads Grpc-Timeout and Connect-Timeout-Ms itself. Timeout panics if header is empty.
func Timeout(header string) func(http.Handler) http.Handler {
	if header == "" {
		panic("hints: Timeout: the header is empty")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ms, err := strconv.ParseUint(r.Header.Get(header), 10, 32)
			if err != nil {
				next.ServeHTTP(w, r)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), time.Duration(ms)*time.Millisecond)
			defer cancel()
			serve(ctx, next, w, r)
		})
	}
}
