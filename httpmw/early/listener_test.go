package early_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/early"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("served")) })

// gauge is a limiter that has room or not.
type gauge struct{ full atomic.Bool }

func (g *gauge) Acquire(context.Context, string, int64) (algo.Lease, error) {
	d := algo.Decision{Allowed: true, Limit: 10, Remaining: 1}
	if g.full.Load() {
		d.Remaining = 0
	}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}

// serveEarly serves h behind a Listener with l until the test ends.
func serveEarly(t testing.TB, srv *http.Server, l algo.Limiter, exempt ...string) (*early.Listener, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := early.NewListener(srv, ln, l, exempt...)
	served := make(chan error)
	go func() { served <- srv.Serve(listener) }()
	t.Cleanup(func() {
		_ = srv.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return listener, ln.Addr().String()
}

// exchange sends one request and reads the answer.
func exchange(t testing.TB, c net.Conn, in *bufio.Reader, request string) (status int, body string) {
	t.Helper()
	_, err := io.WriteString(c, request)
	require.NoError(t, err)
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(in, &http.Request{Method: method})
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.StatusCode == http.StatusServiceUnavailable {
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
	}
	return resp.StatusCode, string(b)
}

// deny sends requests until one is denied: one that comes before the server is
// idle again goes on to it.
func deny(t testing.TB, c net.Conn, in *bufio.Reader) {
	t.Helper()
	for range 1000 {
		if status, _ := exchange(t, c, in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); status == http.StatusServiceUnavailable {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("no request was denied")
}

// TestListener: requests answered at the socket while the limiter has no room,
// and requests that reach the server.
func TestListener(t *testing.T) {
	for request, early := range map[string]bool{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n":                                        true,
		"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n":                                       true,
		"DELETE /a?b=c%20d HTTP/1.1\r\nhost: a\r\nAccept: */*\r\n\r\n":             true,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n":              true,
		"GET /healthy HTTP/1.1\r\nHost: a\r\n\r\n":                                 true,
		"GET /health HTTP/1.1\r\nHost: a\r\n\r\n":                                  false,
		"GET /health?full HTTP/1.1\r\nHost: a\r\n\r\n":                             false,
		"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n":                                   false,
		"GET /admin/page HTTP/1.1\r\nHost: a\r\n\r\n":                              false,
		"GET /%68ealth HTTP/1.1\r\nHost: a\r\n\r\n":                                false,
		"GET //health HTTP/1.1\r\nHost: a\r\n\r\n":                                 false,
		"GET /a/../health HTTP/1.1\r\nHost: a\r\n\r\n":                             false,
		"GET http://a/health HTTP/1.1\r\nHost: a\r\n\r\n":                          false,
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n":                                    false,
		"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n":              false,
		"GET / HTTP/1.1\r\n\r\n":                                                   false,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n":                             false,
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n":                   false,
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n":                          false,
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx":                  false,
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": false,
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n":                  false,
		"GET / HTTP/1.1\nHost: a\n\n":                                              false,
		"GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n":                         false,
		"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n":                             false,
		"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n":                             false,
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n":                false,
	} {
		t.Run(request, func(t *testing.T) {
			var l gauge
			ln, addr := serveEarly(t, &http.Server{Handler: ok}, &l, "/health", "/admin/")
			c, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer c.Close()
			in := bufio.NewReader(c)
			for range 2 { // first on the connection, and later
				l.full.Store(false)
				status, _ := exchange(t, c, in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				require.Equal(t, http.StatusOK, status)
				l.full.Store(true)
				before := ln.Denied()
				deny(t, c, in)
				require.Equal(t, before+1, ln.Denied())
			}
			status, _ := exchange(t, c, in, request)
			require.Equal(t, early, status == http.StatusServiceUnavailable, "status %d", status)
		})
	}
}

// TestListenerFirstRequest of a connection is denied too.
func TestListenerFirstRequest(t *testing.T) {
	var l gauge
	l.full.Store(true)
	_, addr := serveEarly(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }), ReadHeaderTimeout: time.Minute, WriteTimeout: time.Minute}, &l)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for range 3 {
		status, _ := exchange(t, c, in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, http.StatusServiceUnavailable, status)
	}
}

// TestListenerWaitsAsTheServerDoes: a denial restarts the idle timeout, and the
// connection is closed after it.
func TestListenerWaitsAsTheServerDoes(t *testing.T) {
	cases.Slow(t)
	var l gauge
	_, addr := serveEarly(t, &http.Server{Handler: ok, IdleTimeout: 600 * time.Millisecond}, &l)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	exchange(t, c, in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	l.full.Store(true)
	deny(t, c, in)
	for range 10 { // longer than the timeout together
		time.Sleep(100 * time.Millisecond)
		status, _ := exchange(t, c, in, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.Equal(t, http.StatusServiceUnavailable, status)
	}
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// TestListenerIsAskedOnlyBetweenRequests: bodies and pipelined requests that look
// like a request of their own are none.
func TestListenerIsAskedOnlyBetweenRequests(t *testing.T) {
	const inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
	head := fmt.Sprintf("POST /outer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", len(inner))
	var l gauge
	_, addr := serveEarly(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.full.Store(true)
		time.Sleep(30 * time.Millisecond) // until the rest is there
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	})}, &l)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for range 3 {
		l.full.Store(false)
		_, err := io.WriteString(c, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n"+head) // the second head is in the server's buffer
		require.NoError(t, err)
		status, body := exchange(t, c, in, "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "/first ", body)
		time.Sleep(10 * time.Millisecond)
		status, body = exchange(t, c, in, inner)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "/outer "+inner, body)
	}
	l.full.Store(false)
	_, err = io.WriteString(c, "GET /first HTTP/1.1\r\nHost: a\r\n\r\nX")
	require.NoError(t, err)
	_, body := exchange(t, c, in, "")
	require.Equal(t, "/first ", body)
	time.Sleep(10 * time.Millisecond)
	_, body = exchange(t, c, in, inner) // the method is XGET
	require.Equal(t, "/inner ", body)
}

func TestListenerWiring(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	for message, f := range map[string]func(){
		"early: NewListener: the server is nil":                    func() { early.NewListener(nil, ln, &gauge{}) },
		"early: NewListener: the listener is nil":                  func() { early.NewListener(new(http.Server), nil, &gauge{}) },
		"early: NewListener: the limiter is nil":                   func() { early.NewListener(new(http.Server), ln, nil) },
		"early: NewListener: an exempt path does not begin with /": func() { early.NewListener(new(http.Server), ln, &gauge{}, "health") },
	} {
		require.PanicsWithValue(t, message, f)
	}
	var states []http.ConnState
	srv := &http.Server{ConnState: func(_ net.Conn, s http.ConnState) { states = append(states, s) }}
	early.NewListener(srv, ln, &gauge{})
	srv.ConnState(nil, http.StateIdle)
	require.Equal(t, []http.ConnState{http.StateIdle}, states)
}

// TestListenerDeniesNothingForALimitOnTrial, nor for one that is switched off.
func TestListenerDeniesNothingForALimitOnTrial(t *testing.T) {
	full := new(gauge)
	full.full.Store(true)
	off, free := algo.NewSwitch(full), algo.Must(algo.NewTokenBucket(algo.PerSecond(1000)))
	off.Off()
	for name, row := range map[string]struct {
		limit  algo.Limiter
		status int
	}{
		"in force":             {full, 503},
		"on trial":             {algo.Shadow(full), 200},
		"switched off":         {off, 200},
		"all on trial":         {algo.All(algo.Shadow(full), algo.Shadow(full)), 200},
		"on trial beside room": {algo.All(algo.Shadow(full), free), 200},
		"on trial beside none": {algo.All(algo.Shadow(full), full), 503},
	} {
		listener, addr := serveEarly(t, &http.Server{Handler: ok}, row.limit)
		resp, err := http.Get("http://" + addr)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.status, resp.StatusCode, name)
		require.EqualValues(t, row.status/503, listener.Denied(), name)
	}
}

// TestUnencryptedHTTP2: the server reads the preface of HTTP/2 by itself, so the listener denies
// nothing, serves all, and says so once.
func TestUnencryptedHTTP2(t *testing.T) {
	var out bytes.Buffer
	early.ResetWarnings()
	writer := log.Writer()
	log.SetOutput(&out)
	t.Cleanup(func() { log.SetOutput(writer) })
	full := new(gauge)
	full.full.Store(true)
	srv := &http.Server{Handler: ok, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	listener, addr := serveEarly(t, srv, full)
	for range 3 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		in := bufio.NewReader(c)
		for range 3 {
			status, body := exchange(t, c, in, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "served", body)
		}
		require.NoError(t, c.Close())
	}
	require.Zero(t, listener.Denied())
	log.SetOutput(writer)
	require.Equal(t, 1, strings.Count(out.String(), "code=early.unencrypted_http2"), out.String())
}
