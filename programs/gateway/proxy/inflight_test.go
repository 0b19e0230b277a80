package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

// drip sends the head of a request with a body of 1000 bytes, and the first two.
func drip(t *testing.T, r *rig, key string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nX-Api-Key: %s\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nab", key)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	return conn
}

// TestOneClientHoldsFewSlots: a client whose bodies drip holds its own slots, not those of the
// others, and operators see who fills a route.
func TestOneClientHoldsFewSlots(t *testing.T) {
	r := newRig(t, `
routes:
  - pattern: /
    upstream: UPSTREAM
    in_flight: 4
    in_flight_per_client: 2
    limits: [{name: a, key: global, limit: 1000/h}, {name: b, key: "secret:X-Api-Key", limit: 1000/h}]
`, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	load := func() (all []string) {
		r.gateway.InFlight(func(route string, requests, clients int) {
			all = append(all, fmt.Sprint(route, " ", requests, " ", clients))
		})
		return append(all, fmt.Sprint(r.gateway.Bodies()))
	}
	drip(t, r, "one")
	drip(t, r, "one")
	require.Eventually(t, func() bool { return strings.Join(load(), ", ") == "/ 2 1, 2" }, 10*time.Second, time.Millisecond, "%v", load)
	answer, err := io.ReadAll(drip(t, r, "one"))
	require.NoError(t, err)
	require.Contains(t, string(answer), "429 Too Many Requests")
	require.Equal(t, http.StatusOK, r.status("/", "X-Api-Key", "two"))
	require.Equal(t, "a", r.get("/", "X-Api-Key", "two").Header.Get("RateLimit")[1:2])
}

// TestWholeBody: a body that never stops dripping has an end.
func TestWholeBody(t *testing.T) {
	r := newRig(t, "timeouts: {body: 1m, whole_body: 200ms}\nroutes: [{pattern: /, upstream: UPSTREAM}]\n",
		func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	conn := drip(t, r, "one")
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_, _ = conn.Write([]byte("x"))
			}
		}
	}()
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "408 Request Timeout")
}

// TestAccessLogNamesTheCulprit: a line of the access log has the client, the hash of the key that
// denied it, the limit, the cause and the id of the request, which the upstream sees too.
func TestAccessLogNamesTheCulprit(t *testing.T) {
	var id string
	r := newRig(t, "trusted_proxies: [127.0.0.0/8]\nroutes: [{pattern: /, upstream: UPSTREAM, limits: [{name: plan, key: 'secret:X-Api-Key', limit: 1/h}]}]\n",
		func(_ http.ResponseWriter, r *http.Request) { id = r.Header.Get("X-Request-Id") })
	var out bytes.Buffer
	logged := httptest.NewServer(proxy.Served(r.gateway, proxy.AccessLog(slog.New(slog.NewTextHandler(&out, nil)))))
	ask := func(id string) {
		req, err := http.NewRequest(http.MethodGet, logged.URL, nil)
		require.NoError(t, err)
		req.Header = http.Header{"X-Api-Key": {"k"}, "X-Forwarded-For": {"192.0.2.7"}, "X-Request-Id": {id}}
		resp, err := logged.Client().Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	ask("mine")
	require.Equal(t, "mine", id)
	ask("a b\"\n"[:4])
	logged.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Regexp(t, `client=192\.0\.2\.7 key="" policy="" cause="" request_id=mine$`, lines[0])
	require.Regexp(t, `client=192\.0\.2\.7 key=[0-9a-f]{16} policy=plan cause=quota request_id=[0-9a-f]{16}$`, lines[1])
	require.NotContains(t, out.String(), "X-Api-Key")
}
