package proxy_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

// Limits are kept per key, the fields are on the answers, and a shared limit is
// one limit.
func TestLimits(t *testing.T) {
	r := newRig(t, `
limits:
  - {name: all, key: global, limit: 5/h}
routes:
  - pattern: /a/
    upstream: UPSTREAM
    limits: [all, {name: user, key: "header:X-User", limit: 2/h}]
  - pattern: /b/
    upstream: UPSTREAM
    limits: [all]
  - pattern: /free
    upstream: UPSTREAM
`, ok)
	resp := r.get("/a/1", "X-User", "ann")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, `"all";r=4;t=720, "user";r=1;t=1800`, resp.Header.Get("RateLimit"))
	require.Equal(t, http.StatusOK, r.status("/a/2", "X-User", "ann"))
	denied := r.get("/a/3", "X-User", "ann")
	require.Equal(t, http.StatusTooManyRequests, denied.StatusCode)
	require.NotEmpty(t, denied.Header.Get("Retry-After"))
	require.Equal(t, "application/problem+json", denied.Header.Get("Content-Type"))
	require.Equal(t, http.StatusOK, r.status("/a/1", "X-User", "bob"))
	require.Equal(t, http.StatusOK, r.status("/b/1"), "denied requests were not charged to the shared limit")
	require.Equal(t, http.StatusOK, r.status("/b/1"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/b/1"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/a/1", "X-User", "cid"))
	require.Equal(t, http.StatusOK, r.status("/free"))
	require.Equal(t, http.StatusNotFound, r.status("/none"))
}

func TestKeysCostsAndModes(t *testing.T) {
	r := newRig(t, `
routes:
  - pattern: /cost
    upstream: UPSTREAM
    limits: [{name: cost, key: global, limit: 10/h, cost: "header:X-Units"}]
  - pattern: /three
    upstream: UPSTREAM
    limits: [{name: three, key: global, limit: 7/h, cost: 3}]
  - pattern: /shadow
    upstream: UPSTREAM
    limits: [{name: shadow, key: global, limit: 1/h, shadow: true}]
  - pattern: /secret
    upstream: UPSTREAM
    missing_key: deny
    headers: none
    limits: [{name: secret, key: [secret:X-Api-Key, route], limit: 1/h}]
  - pattern: /legacy
    upstream: UPSTREAM
    headers: legacy
    missing_key: skip
    limits: [{name: legacy, key: "header:X-User", limit: 1/h}]
`, ok)
	require.Equal(t, `"cost";r=4;t=360`, r.get("/cost", "X-Units", "6").Header.Get("RateLimit"))
	require.Equal(t, `"cost";r=3;t=360`, r.get("/cost", "X-Units", "-6").Header.Get("RateLimit"), "nonsense costs one")
	require.Equal(t, http.StatusTooManyRequests, r.status("/cost", "X-Units", "4"))

	require.Equal(t, http.StatusOK, r.status("/three"))
	require.Equal(t, http.StatusOK, r.status("/three"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/three"))

	for range 3 {
		require.Equal(t, http.StatusOK, r.status("/shadow"))
	}

	unnamed := r.get("/secret")
	require.Equal(t, http.StatusUnauthorized, unnamed.StatusCode, "no key")
	require.Equal(t, `ApiKey name="X-Api-Key"`, unnamed.Header.Get("WWW-Authenticate"))
	require.Empty(t, unnamed.Header.Get("Retry-After"))
	e := <-r.events
	for e.Policy != "secret" {
		e = <-r.events
	}
	require.Equal(t, http.StatusUnauthorized, e.Status)
	require.Equal(t, telemetry.Denied, e.Result)
	require.Equal(t, http.StatusOK, r.status("/secret", "X-Api-Key", "one"))
	require.Equal(t, http.StatusOK, r.status("/secret", "X-Api-Key", "two"))
	denied := r.get("/secret", "X-Api-Key", "one")
	require.Equal(t, http.StatusTooManyRequests, denied.StatusCode)
	require.Empty(t, denied.Header.Get("RateLimit"))

	require.Equal(t, "0", r.get("/legacy", "X-User", "a").Header.Get("X-RateLimit-Remaining"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/legacy", "X-User", "a"))
	require.Equal(t, http.StatusOK, r.status("/legacy"), "without a key it is skipped")
}

// The upstream gets the known facts about the client: the headers of a trusted
// proxy, otherwise the address.
func TestForwarded(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For")+" "+r.Header.Get("X-Forwarded-Proto")+" "+r.Host)
	}
	const routes = `
routes:
  - {pattern: /, upstream: UPSTREAM}
  - {pattern: /host, upstream: UPSTREAM, preserve_host: true}
`
	said := func(r *rig, path string) string {
		body, err := io.ReadAll(r.get(path, "X-Forwarded-For", "203.0.113.7", "X-Forwarded-Proto", "https").Body)
		require.NoError(t, err)
		return string(body)
	}
	r := newRig(t, routes, echo)
	upstream, front := r.upstream.Listener.Addr().String(), r.front.Listener.Addr().String()
	require.Equal(t, "127.0.0.1 http "+upstream, said(r, "/"))
	require.Equal(t, "127.0.0.1 http "+front, said(r, "/host"))
	r = newRig(t, "trusted_proxies: [127.0.0.0/8]"+routes, echo)
	require.Equal(t, "203.0.113.7, 127.0.0.1 https "+r.upstream.Listener.Addr().String(), said(r, "/"))
}

// An upstream that is not there is a 502, and nothing of why reaches the
// client.
func TestUpstreamGone(t *testing.T) {
	r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM}]", ok)
	r.upstream.Close()
	resp := r.get("/")
	require.Equal(t, http.StatusBadGateway, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "Bad Gateway\n", string(body))
}

// The overload protection is around everything, sends no quota fields to
// clients, and is the first policy.
func TestOverload(t *testing.T) {
	inside, leave := make(chan struct{}, 1), make(chan struct{})
	r := newRig(t, `
overload: {max_in_flight: 1}
routes:
  - pattern: /
    upstream: UPSTREAM
    limits: [{name: all, key: global, limit: 2/h}]
`, func(w http.ResponseWriter, _ *http.Request) { inside <- struct{}{}; <-leave })
	done := make(chan int, 1)
	go func() {
		resp, err := http.Get(r.front.URL)
		if err != nil {
			done <- 0
			return
		}
		_ = resp.Body.Close()
		done <- resp.StatusCode
	}()
	<-inside
	shed := r.get("/")
	require.Equal(t, http.StatusServiceUnavailable, shed.StatusCode)
	require.Empty(t, shed.Header.Get("RateLimit"))
	close(leave)
	require.Equal(t, http.StatusOK, <-done)
	require.Equal(t, http.StatusOK, r.status("/"), "denied requests were not charged")
	<-inside
	require.Equal(t, http.StatusTooManyRequests, r.status("/"))
	first := <-r.events
	require.Equal(t, proxy.OverloadName, first.Policy)
	http.DefaultClient.CloseIdleConnections()
}

// A path without the slash at the end of its route is on that route, with its limit and key, and is
// passed on as it is, unless a route of its own has it.
func TestPathWithoutItsLastSlash(t *testing.T) {
	var got string
	r := newRig(t, `
routes:
  - {pattern: /api/, upstream: UPSTREAM, limits: [{name: a, key: [route, ip], limit: 2/h}]}
  - {pattern: /own/, upstream: UPSTREAM, limits: [{name: b, key: ip, limit: 1/h}]}
  - {pattern: /own, upstream: UPSTREAM}
  - {pattern: "/k/{x}/y/", upstream: UPSTREAM}
  - {pattern: "/k/z/{x}", upstream: UPSTREAM}
`, func(_ http.ResponseWriter, req *http.Request) { got = req.URL.Path })
	require.Equal(t, http.StatusOK, r.send("POST", "/api"))
	require.Equal(t, "/api", got)
	require.Equal(t, http.StatusOK, r.send("GET", "/api/"))
	require.Equal(t, http.StatusTooManyRequests, r.send("GET", "/api"))
	for range 3 {
		require.Equal(t, http.StatusOK, r.send("GET", "/own"))
	}
	require.Equal(t, http.StatusOK, r.send("GET", "/k/z/y"))
}
