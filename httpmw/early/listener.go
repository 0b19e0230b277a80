// Package early denies HTTP requests at the socket while a limit has no room, before net/http has
// parsed them and called a handler.
//
// Do not use it without the middleware, which decides about all other requests.
package early

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/warning"
)

// Listener denies requests at the socket. It is for services whose handlers need hardly more processor
// time than a denial by httpmw.Limit. Measure whether it gains something there.
type Listener struct {
	net.Listener
	server  *http.Server
	limiter algo.Limiter
	exempt  []string
	timeout time.Duration
	denied  atomic.Uint64
}

// NewListener wraps ln for srv, which then serves on the result:
//
//	ln, err := net.Listen("tcp", ":8080")
//	...
//	srv := &http.Server{Handler: httpmw.Limit(l, keyfunc.Global())(mux)}
//	err = srv.Serve(early.NewListener(srv, ln, l, "/healthz", "/admin/"))
//
// While a peek at l (0 units, the empty key) finds no room, the listener answers a
// whole HTTP/1.1 request without a body with 503 and Retry-After. It passes everything
// else to srv unchanged: requests with a body, an upgrade or an expectation, pipelined
// ones, those that arrive in parts or that srv has begun to read, exempt paths, paths
// with escapes or dots, and connections that are not plain HTTP/1.1 (TLS, HTTP/2). For
// those l decides in the middleware, which must be mounted too.
//
// An exempt path that ends in "/" covers the paths below it, others only
// themselves. Exempt the paths that must work under overload: health checks, metrics,
// administration.
//
// A limit on trial ([algo.Shadow]) denies nothing. Nor does the listener for a server with
// unencrypted HTTP/2 enabled ([http.Protocols]), which looks for its preface before a request;
// it logs that once, with the code early.unencrypted_http2.
//
// No event reports these denials, because the listener does not parse the request;
// see [Listener.Denied]. The limiter counts them as arrivals.
//
// NewListener wraps srv.ConnState: set ConnState first, and call NewListener before
// srv serves. It panics if srv, ln or l is nil, and if an exempt path does not begin
// with "/".
//
// Do not use it with a limiter per client or with priorities, which a peek with the
// empty key does not see, or with a queue. Behind a proxy that retries 503 at once it
// saves nothing. For gRPC see grpcmw/early.TapHandle.
func NewListener(srv *http.Server, ln net.Listener, l algo.Limiter, exempt ...string) *Listener {
	must(srv != nil, "NewListener: the server is nil")
	must(ln != nil, "NewListener: the listener is nil")
	must(l != nil, "NewListener: the limiter is nil")
	for _, path := range exempt {
		must(strings.HasPrefix(path, "/"), "NewListener: an exempt path does not begin with /")
	}
	timeout := denialTimeout
	if srv.WriteTimeout > 0 {
		timeout = min(timeout, srv.WriteTimeout)
	}
	before := srv.ConnState
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		if c, ok := conn.(*serverConn); ok { // not so under TLS
			c.follow(state)
		}
		if before != nil {
			before(conn, state)
		}
	}
	return &Listener{Listener: ln, server: srv, limiter: l, exempt: exempt, timeout: timeout}
}

// Denied returns the number of requests denied at the socket.
func (l *Listener) Denied() uint64 { return l.denied.Load() }

// Accept returns a connection that answers while the limiter has no room.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return conn, nil // the server looks at its type
	}
	if p := l.server.Protocols; p != nil && p.UnencryptedHTTP2() {
		warnPreface.Log()
		return conn, nil
	}
	return &serverConn{Conn: conn, listener: l}, nil
}

var warnPreface = &warning.Once{Line: warning.Line{
	Code:    "early.unencrypted_http2",
	Message: "httpmw/early: the server has unencrypted HTTP/2 enabled, so nothing is denied at the socket",
	Do:      "serve HTTP/2 without TLS by another server, or remove the listener",
}}

// overloaded reports whether a request would be denied: a limit on trial denies none.
func (l *Listener) overloaded() bool {
	lease, err := l.limiter.Acquire(noWait, "", 0)
	lease.Release(algo.Canceled) // does nothing, unless the limiter does not know peeks
	return err == nil && lease.InForce() && (!lease.Allowed || lease.Remaining < 1)
}

// noWait is a context with which a limiter does not wait.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// must panics unless ok: a server that is wired wrongly must not start.
func must(ok bool, what string) {
	if !ok {
		panic("early: " + what)
	}
}
