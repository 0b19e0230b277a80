package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each request has a line in the access log, without its query, and is counted
// by its route.
func TestAccessLogAndMetrics(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		_, _ = io.WriteString(w, "hello")
	})
	p := start(t, "access_log: json\ntimeouts: {unready: 0s}\nroutes: [{pattern: 'GET /items/{id}', upstream: '"+u+"', limits: [{name: a, key: ip, limit: 1/h}]}]\n")
	for _, path := range []string{"/items/7?token=secret", "/items//8", "/none"} {
		p.ask(path)
	}
	_, metrics := p.get(p.admin + "/metrics")
	p.end()
	require.Equal(t, 0, p.exit)
	var got [][]any
	for line := range strings.Lines(p.out.String()) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l), line)
		got = append(got, []any{l["method"], l["path"], l["route"], l["status"], l["upstream_seconds"].(float64) > 0.001})
		require.Greater(t, l["seconds"], 0.0)
	}
	require.Equal(t, [][]any{
		{"GET", "/items/7", "GET /items/{id}", 200.0, true},
		{"GET", "/items//8", "GET /items/{id}", 429.0, false},
		{"GET", "/none", "", 404.0, false},
	}, got)
	require.NotContains(t, p.out.String(), "secret")
	for _, line := range []string{
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="GET /items/{id}"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="429",http_route="GET /items/{id}"} 1`,
		`http_client_request_duration_seconds_count{http_route="GET /items/{id}"} 1`,
	} {
		require.Contains(t, metrics, line)
	}
}

// TestLinesAreShort: no text of a client, an upstream or a file makes a long line.
func TestLinesAreShort(t *testing.T) {
	long := strings.Repeat("A", 200<<10)
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 "+long+"\r\n\r\n")
			_ = conn.Close()
		}
	})
	p := start(t, "access_log: text\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"'}]\n")
	require.Equal(t, http.StatusBadGateway, p.ask("/"+long))
	p.write("routes: [{pattern: /, upstream: " + long + "}]\n")
	require.Eventually(t, func() bool { return strings.Contains(p.log.String(), "configuration not loaded") }, 10*time.Second, time.Millisecond)
	p.end()
	require.Contains(t, p.log.String(), `msg="upstream failed"`)
	require.Contains(t, p.out.String(), "path=/AAAA")
	for line := range strings.Lines(p.out.String() + p.log.String()) {
		require.Less(t, len(line), 8<<10)
	}
}

// The wrapper of each request passes on upgrades, flushes and deadlines.
func TestUpgradeThroughTheCommand(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	})
	p := start(t, "timeouts: {unready: 0s, body: 100ms}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 10/h}]}]\n")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.front, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	text := make([]byte, 0, 4096)
	readTo := func(end string) {
		for !strings.HasSuffix(string(text), end) {
			n, err := conn.Read(text[len(text):cap(text)])
			require.NoError(t, err, string(text))
			text = text[:len(text)+n]
		}
	}
	readTo("\r\n\r\n")
	_, err = io.WriteString(conn, "ping")
	require.NoError(t, err)
	readTo("ping")
	require.Contains(t, string(text), "101 Switching Protocols")

	slow, err := net.Dial("tcp", strings.TrimPrefix(p.front, "http://"))
	require.NoError(t, err)
	defer slow.Close()
	_, err = io.WriteString(slow, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nab")
	require.NoError(t, err)
	require.NoError(t, slow.SetDeadline(time.Now().Add(10*time.Second)))
	answer, err := io.ReadAll(slow)
	require.NoError(t, err)
	require.Contains(t, string(answer), "408 Request Timeout")
}
