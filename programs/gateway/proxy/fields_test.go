package proxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The upstream has limits of its own. A client gets one set of fields for each policy: of
// two with one name the tighter one, the upstream's or the gateway's, as the route says.
func TestFieldsOfTheUpstream(t *testing.T) {
	const ours, ourPolicy = `"a";r=4;t=720`, `"a";q=5;w=3600`
	for _, tc := range []struct {
		name, mode, fields string
		theirs             http.Header
		want               http.Header
	}{
		{"tighter theirs", "tighter", "ietf",
			http.Header{"RateLimit": {`"a";r=2;t=9`}, "RateLimit-Policy": {`"a";q=50;w=60`}},
			http.Header{"RateLimit": {`"a";r=2;t=9`}, "RateLimit-Policy": {`"a";q=50;w=60`}}},
		{"tighter ours", "tighter", "ietf",
			http.Header{"RateLimit": {`"a";r=20;t=9`}, "RateLimit-Policy": {`"a";q=50;w=60`}},
			http.Header{"RateLimit": {ours}, "RateLimit-Policy": {ourPolicy}}},
		{"other names beside ours", "tighter", "ietf",
			http.Header{"RateLimit": {`"b";r=1, "a";r=0;t=3`, `"c, d";r=7`}, "RateLimit-Policy": {`"b";q=1, "a";q=2, "c, d";q=9`}},
			http.Header{"RateLimit": {`"a";r=0;t=3, "b";r=1, "c, d";r=7`}, "RateLimit-Policy": {`"a";q=2, "b";q=1, "c, d";q=9`}}},
		{"an older draft, which would break ours", "tighter", "ietf",
			http.Header{"RateLimit": {`limit=100, remaining=3, reset=9`}, "RateLimit-Policy": {`100;w=60`}},
			http.Header{"RateLimit": {ours}, "RateLimit-Policy": {ourPolicy}}},
		{"keep", "keep", "ietf",
			http.Header{"RateLimit": {`"a";r=20;t=9`}},
			http.Header{"RateLimit": {`"a";r=20;t=9`}, "RateLimit-Policy": nil}},
		{"keep, without theirs", "keep", "ietf",
			http.Header{"Other": {"x"}},
			http.Header{"RateLimit": {ours}, "RateLimit-Policy": {ourPolicy}}},
		{"drop", "drop", "ietf",
			http.Header{"RateLimit": {`"b";r=20;t=9`}, "X-RateLimit-Remaining": {"1"}, "RateLimit-Remaining": {"1"}},
			http.Header{"RateLimit": {ours}, "RateLimit-Policy": {ourPolicy}, "X-RateLimit-Remaining": nil, "RateLimit-Remaining": nil}},
		{"legacy, tighter theirs", "tighter", "legacy",
			http.Header{"X-RateLimit-Limit": {"60"}, "X-RateLimit-Remaining": {"1"}, "X-RateLimit-Reset": {"1700000000"}},
			http.Header{"X-RateLimit-Limit": {"60"}, "X-RateLimit-Remaining": {"1"}, "X-RateLimit-Reset": {"1700000000"}}},
		{"legacy, tighter ours", "tighter", "legacy",
			http.Header{"X-RateLimit-Limit": {"60"}, "X-RateLimit-Remaining": {"59"}, "X-RateLimit-Reset": {"1700000000"}},
			http.Header{"X-RateLimit-Limit": {"5"}, "X-RateLimit-Remaining": {"4"}, "X-RateLimit-Reset": {"720"}}},
		{"none of ours", "tighter", "none",
			http.Header{"RateLimit": {`"a";r=20;t=9`}, "X-RateLimit-Remaining": {"59"}},
			http.Header{"RateLimit": {`"a";r=20;t=9`}, "X-RateLimit-Remaining": {"59"}}},
	} {
		for _, hints := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM, upstream_fields: "+tc.mode+", headers: "+tc.fields+", limits: [{name: a, key: global, limit: 5/h}]}]\n",
					func(w http.ResponseWriter, _ *http.Request) {
						if hints {
							w.WriteHeader(http.StatusEarlyHints)
						}
						for name, lines := range tc.theirs {
							w.Header()[http.CanonicalHeaderKey(name)] = lines
						}
						w.WriteHeader(http.StatusOK)
					})
				got := r.get("/").Header
				for name, want := range tc.want {
					require.Equal(t, want, http.Header(got)[http.CanonicalHeaderKey(name)], name)
				}
			})
		}
	}
}
