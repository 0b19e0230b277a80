package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestDenialHasItsOwnHeader: fields that a handler around the limit has set for its answer do not
// stay on a denial, by any constructor: a cache would serve the denial of one client to all. Fields
// that concern any answer stay, as with http.Error.
func TestDenialHasItsOwnHeader(t *testing.T) {
	around := http.Header{
		"Cache-Control": {"public, max-age=600"}, "Cdn-Cache-Control": {"max-age=600"}, "Cloudflare-Cdn-Cache-Control": {"max-age=600"},
		"Surrogate-Control": {"max-age=600"}, "Expires": {"Thu, 01 Dec 2033 16:00:00 GMT"}, "Etag": {`"abc"`},
		"Last-Modified": {"Thu, 01 Dec 1994 16:00:00 GMT"}, "Content-Range": {"bytes 0-1/2"}, "Content-Length": {"7"},
		"Content-Disposition": {"attachment"}, "Content-Location": {"/x"},
		"X-Accel-Expires": {"600"}, "Edge-Control": {"max-age=600"}, "Age": {"5"},
		"X-Accel-Redirect": {"/file"}, "X-Sendfile": {"/file"}, // a proxy would send the file
		"X-Sendfile2": {"/file 0-9"}, "X-Lighttpd-Send-File": {"/file"}, "X-Litespeed-Location": {"/file"},
		"ETag":           {`"raw"`}, // not canonical
		"Content-Digest": {"sha-256=:AA==:"}, "Repr-Digest": {"sha-256=:AA==:"}, "Digest": {"sha-256=AA=="}, "Content-Md5": {"AA=="},
		"Retry-After": {"5"}, "Retry-After-Ms": {"5000"}, // of another denial than one for ever
	}
	l := algo.DenyAll()
	teapot := httpmw.WithDenied(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for name, h := range map[string]http.Handler{
		"Limit":      httpmw.Limit(l, keyfunc.Global())(http.NotFoundHandler()),
		"WithDenied": httpmw.Limit(l, keyfunc.Global(), teapot)(http.NotFoundHandler()),
		"Answer": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.False(t, httpmw.Answer(w, r, l, "k", algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: algo.Forever}))
		}),
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		for field, lines := range around {
			w.Header()[field] = lines
		}
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Content-Encoding", "gzip") // by a writer that compresses
		h.ServeHTTP(w, r)
		require.GreaterOrEqual(t, w.Code, 400, name)
		for field := range around {
			want := ""
			if field == "Cache-Control" {
				want = "no-store"
			}
			require.Equal(t, want, strings.Join(w.Header()[field], ","), "%s: %s", name, field)
		}
		require.Equal(t, "Origin", w.Header().Get("Vary"), name)
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"), name)
	}
}
