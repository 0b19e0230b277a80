package proxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

const corsRoutes = `
cors: {origins: ["https://app.example"], credentials: true}
routes:
  - {pattern: /, upstream: UPSTREAM}
  - pattern: POST /orders
    upstream: UPSTREAM
    missing_key: deny
    limits: [{name: orders, key: "header:X-User", limit: 1/h}]
`

// preflight asks whether a page may send a POST.
func (r *rig) preflight(origin string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodOptions, r.front.URL+"/orders", nil)
	require.NoError(r.t, err)
	req.Header = http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-user"}}
	resp, err := r.front.Client().Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp
}

func (r *rig) post(headers ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.front.URL+"/orders", nil)
	require.NoError(r.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := r.front.Client().Do(req)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp
}

// A preflight of an allowed origin reaches the upstream of the route that it asks about,
// without a key and without a charge. Every answer of the gateway to such a page can be
// read by it.
func TestBrowsers(t *testing.T) {
	var preflights int
	r := newRig(t, corsRoutes, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			preflights++
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			w.Header().Set("Access-Control-Allow-Methods", "POST")
			w.WriteHeader(http.StatusNoContent)
		}
	})
	const app = "https://app.example"
	for range 3 {
		resp := r.preflight(app)
		require.Equal(t, http.StatusNoContent, resp.StatusCode)
		require.Equal(t, []string{app}, resp.Header.Values("Access-Control-Allow-Origin"), "of the upstream alone")
		require.Equal(t, "POST", resp.Header.Get("Access-Control-Allow-Methods"))
	}
	require.Equal(t, 3, preflights)

	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		resp := r.post("Origin", app, "X-User", "ann")
		require.Equal(t, want, resp.StatusCode)
		require.Equal(t, []string{app}, resp.Header.Values("Access-Control-Allow-Origin"), i)
		require.Equal(t, "true", resp.Header.Get("Access-Control-Allow-Credentials"))
		require.Contains(t, resp.Header.Get("Access-Control-Expose-Headers"), "RateLimit, RateLimit-Policy, Retry-After")
		require.Contains(t, resp.Header.Values("Vary"), "Origin")
	}
	nobody := r.post("Origin", app)
	require.Equal(t, http.StatusUnauthorized, nobody.StatusCode)
	require.Equal(t, app, nobody.Header.Get("Access-Control-Allow-Origin"))

	foreign := r.post("Origin", "https://evil.example", "X-User", "bob")
	require.Empty(t, foreign.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, foreign.Header.Values("Vary"), "Origin")
	require.Equal(t, http.StatusOK, foreign.StatusCode)
	r.preflight("https://evil.example")
	require.Equal(t, 4, preflights, "of other origins they are requests of the route for OPTIONS, which is not limited here")
}

// A preflight is charged like any request where no origin is allowed.
func TestPreflightsOfNoOrigin(t *testing.T) {
	r := newRig(t, `
routes:
  - pattern: /orders
    upstream: UPSTREAM
    limits: [{name: orders, key: ip, limit: 1/h}]
`, ok)
	require.Equal(t, http.StatusOK, r.preflight("https://app.example").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, r.preflight("https://app.example").StatusCode)
}
