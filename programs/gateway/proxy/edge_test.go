package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A header in which a proxy would name the client is dropped unless a trusted
// proxy sent it.
func TestSpoofedClientAddress(t *testing.T) {
	const routes = "routes: [{pattern: /, upstream: UPSTREAM}]\n"
	names := []string{"X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "Cf-Connecting-Ip", "X-Cluster-Client-Ip", "Fastly-Client-Ip", "Forwarded",
		"Cloudfront-Viewer-Address", "X-Azure-Clientip", "X-Azure-Socketip", "Cf-Connecting-Ipv6", "Eo-Connecting-Ip", "Ali-Cdn-Real-Ip", "Fly-Client-Ip",
		"Client-Ip", "X-Originating-Ip", "X-Appengine-User-Ip", "X-Proxyuser-Ip",
		"X-Forwarded-Port", "X-Forwarded-User", "X-Original-Forwarded-For", "X-Envoy-External-Address", "X-Original-Url", "X-Rewrite-Url",
		"X_real_ip", "X_forwarded_for"} // servers of CGI and its heirs read _ as -
	var got http.Header
	echo := func(_ http.ResponseWriter, r *http.Request) { got = r.Header }
	var sent []string
	for _, name := range names {
		sent = append(sent, name, "for=203.0.113.7")
	}
	newRig(t, routes, echo).get("/", sent...)
	for _, name := range names {
		require.Empty(t, got.Values(name), name)
	}
	newRig(t, "trusted_proxies: [127.0.0.0/8]\n"+routes, echo).get("/", sent...)
	require.Equal(t, "for=203.0.113.7", got.Get("X-Real-Ip"))
}

// A path reaches the upstream as the client sent it, and meets the limits of
// the route that its cleaned form matches.
func TestPathsPassUnchanged(t *testing.T) {
	var got string
	r := newRig(t, `
routes:
  - {pattern: /, upstream: UPSTREAM}
  - pattern: /api/
    upstream: UPSTREAM/base
    limits: [{name: api, key: global, limit: 2/h}]
  - pattern: /users/{user}/
    upstream: UPSTREAM
    limits: [{name: user, key: "path:user", limit: 1/h}]
`, func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI })
	front := r.front.Listener.Addr().String()
	status := func(target string) int {
		conn, err := net.Dial("tcp", front)
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", target)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for target, want := range map[string]string{
		"//files//x?q=1": "//files//x?q=1",
		"/a/../b":        "/a/../b",
		"/a/./b":         "/a/./b",
		"/a/%2e%2e/b":    "/a/%2e%2e/b",
		"/a%2Fb//c":      "/a%2Fb//c",
		"/plain/":        "/plain/",
		"/a?b;c=1&d=%zz": "/a?b;c=1&d=%zz",
		"http://h?q":     "/?q",
	} {
		require.Equal(t, http.StatusOK, status(target), target)
		require.Equal(t, want, got, target)
	}
	require.Equal(t, http.StatusOK, status("/api//x"))
	require.Equal(t, "/base/api//x", got)
	require.Equal(t, http.StatusOK, status("/x/../api/y"))
	require.Equal(t, http.StatusTooManyRequests, status("//api/z"), "every spelling meets the limit of its route")

	require.Equal(t, http.StatusOK, status("//users/a%2Fb/"))
	require.Equal(t, "//users/a%2Fb/", got)
	require.Equal(t, http.StatusTooManyRequests, status("/users/a%2fb/"), "one user in two spellings")
	require.Equal(t, http.StatusOK, status("/users/a/"))
	for _, target := range []string{"/api%2Fz", "/x/..%2fapi/z", "/%5Capi/z", `/\api/z`, "/x%2F%2e%2e/api%2fz"} {
		require.Equal(t, http.StatusBadRequest, status(target), "%s is below /api/ for an upstream that decodes it first", target)
	}
}

// What the client could not be served is not charged to it.
func TestRefundOn(t *testing.T) {
	status := http.StatusOK
	r := newRig(t, `
routes:
  - pattern: /
    upstream: UPSTREAM
    limits: [{name: a, key: global, limit: 2/h}]
  - pattern: /own
    upstream: UPSTREAM
    refund_on: [404]
    limits: [{name: b, key: global, limit: 1/h}]
  - pattern: /never
    upstream: UPSTREAM
    refund_on: []
    limits: [{name: c, key: global, limit: 1/h}]
`, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	require.Equal(t, http.StatusOK, r.status("/"))
	status = http.StatusBadGateway
	for range 5 {
		require.Equal(t, http.StatusBadGateway, r.status("/"), "a 502 costs nothing")
	}
	status = http.StatusNotFound
	for range 3 {
		require.Equal(t, http.StatusNotFound, r.status("/own"))
	}
	status = http.StatusBadGateway
	require.Equal(t, http.StatusBadGateway, r.status("/own"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/own"))
	require.Equal(t, http.StatusBadGateway, r.status("/never"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/never"))
	status = http.StatusOK
	require.Equal(t, http.StatusOK, r.status("/"))
	require.Equal(t, http.StatusTooManyRequests, r.status("/"))
}

// A body that stops coming ends the request; one that comes slowly but steadily
// does not, and neither does a slow answer.
func TestBodyTimeout(t *testing.T) {
	read := make(chan error, 1)
	r := newRig(t, "timeouts: {body: 1s}\nroutes: [{pattern: /, upstream: UPSTREAM}]\n",
		func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			time.Sleep(1500 * time.Millisecond)
			read <- err
		})
	send := func(parts int) (int, error) {
		conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n")
		require.NoError(t, err)
		for range parts {
			_, err = conn.Write([]byte("x"))
			require.NoError(t, err)
			time.Sleep(50 * time.Millisecond)
		}
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	status, err := send(10)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, <-read)
	status, err = send(3)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestTimeout, status)
	require.Error(t, <-read, "the upstream is not kept waiting either")
}

// exchange sends raw bytes and, once reached is closed (at once if it is nil), their end;
// it returns the response.
func (r *rig) exchange(raw string, reached <-chan struct{}) *http.Response {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, raw)
	require.NoError(r.t, err)
	if reached != nil {
		<-reached
	}
	require.NoError(r.t, conn.(*net.TCPConn).CloseWrite())
	require.NoError(r.t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp
}

// A body that is broken is the fault of the client: it is charged, and no failure of the
// upstream, of which it would get its charge back.
func TestBrokenBodyIsCharged(t *testing.T) {
	for name, body := range map[string]string{
		"chunk": "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"short": "Content-Length: 10\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM, limits: [{name: a, key: ip, limit: 2/h}]}]\n",
				func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
			for _, want := range []int{http.StatusBadRequest, http.StatusBadRequest, http.StatusTooManyRequests} {
				require.Equal(t, want, r.exchange("POST / HTTP/1.1\r\nHost: h\r\n"+body, nil).StatusCode)
			}
		})
	}
}

// A client that closes its half of the connection is taken for one that is gone, and
// gets no answer that looks like one of the upstream.
func TestHalfClosedClient(t *testing.T) {
	reached := make(chan struct{})
	r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM}]\n", func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	require.Equal(t, 499, r.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", reached).StatusCode)
}

// A client that does not read its answer is cut off, and gives its place with the upstream
// back; one that reads slowly but steadily is not.
func TestSendTimeout(t *testing.T) {
	const size = 64 << 20
	r := newRig(t, "timeouts: {send: 300ms}\nroutes: [{pattern: /big, upstream: UPSTREAM, in_flight: 1}, {pattern: /slow, upstream: UPSTREAM}]\n",
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				for range 3 {
					_, _ = io.WriteString(w, "part")
					_ = http.NewResponseController(w).Flush()
					time.Sleep(500 * time.Millisecond)
				}
				return
			}
			for range size >> 20 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		})
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(conn, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		resp, err := r.front.Client().Get(r.front.URL + "/big")
		require.NoError(t, err)
		n, _ := io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK && n == size
	}, 20*time.Second, 100*time.Millisecond, "the place of a client that reads nothing")

	resp, err := http.Get(r.front.URL + "/slow")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err, "pauses of the upstream are no fault of the client")
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "partpartpart", string(body))
	http.DefaultClient.CloseIdleConnections()
}
