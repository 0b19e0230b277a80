package proxy_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lists of addresses, with the client behind a trusted proxy; a route's own
// lists replace the file's.
func TestAccessLists(t *testing.T) {
	r := newRig(t, `
trusted_proxies: [127.0.0.1, "::1"]
access: {deny: [192.0.2.0/24, "2001:db8:bad::/48"], allow: [198.51.100.7]}
routes:
  - {pattern: /, upstream: UPSTREAM, limits: [{name: a, key: ip, limit: 1/h}]}
  - {pattern: /open, upstream: UPSTREAM, access: {deny: []}}
`, ok)
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	for _, address := range []string{"192.0.2.1", "2001:db8:bad:1::7"} {
		require.Equal(t, 403, r.status("/", from(address)...), address)
		require.Equal(t, 200, r.status("/open", from(address)...), address)
	}
	for range 3 {
		require.Equal(t, 200, r.status("/", from("198.51.100.7")...), "not limited")
	}
	require.Equal(t, 200, r.status("/", from("198.51.100.8")...))
	require.Equal(t, 429, r.status("/", from("198.51.100.8")...))
	require.Equal(t, 200, r.status("/", from("2001:db8:900d::1")...))
}

func TestCustomDenial(t *testing.T) {
	r := newRig(t, `
denial: {body: "slow down"}
overload: off
routes:
  - {pattern: /a, upstream: UPSTREAM, limits: [{name: a, key: ip, limit: 1/h}]}
  - {pattern: /b, upstream: UPSTREAM, denial: {status: 403, content_type: application/json, body: '{"error":"quota"}'}, limits: [{name: b, key: ip, limit: 1/h}]}
`, ok)
	for path, want := range map[string]struct {
		status     int
		kind, body string
	}{"/a": {429, "text/plain; charset=utf-8", "slow down"}, "/b": {403, "application/json", `{"error":"quota"}`}} {
		require.Equal(t, 200, r.status(path))
		resp := r.get(path)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, want.status, resp.StatusCode)
		require.Equal(t, want.kind, resp.Header.Get("Content-Type"))
		require.Equal(t, want.body, string(body))
		require.NotEmpty(t, resp.Header.Get("Retry-After"))
	}
}

// The number of requests at the upstream never exceeds the bound, across a
// reload too, and denied requests are charged to no limit.
func TestInFlightOfARoute(t *testing.T) {
	inside, leave := make(chan struct{}, 10), make(chan struct{})
	file := "routes: [{pattern: /slow, upstream: UPSTREAM, in_flight: 2, limits: [{name: a, key: global, limit: 4/h}]}, {pattern: /, upstream: UPSTREAM}]\n"
	r := newRig(t, file, func(_ http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/slow" {
			inside <- struct{}{}
			<-leave
		}
	})
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- r.status("/slow") }()
		<-inside
	}
	require.NoError(t, r.gateway.Apply(r.parse(file+"overload: {max_in_flight: 1000}\n")))
	for range 5 {
		require.Equal(t, http.StatusServiceUnavailable, r.status("/slow"))
	}
	require.Equal(t, 200, r.status("/"))
	close(leave)
	require.Equal(t, []int{200, 200}, []int{<-done, <-done})
	require.Equal(t, []int{200, 200, 429}, []int{r.status("/slow"), r.status("/slow"), r.status("/slow")})
}
