// Command server is the server of the overload measurement: one handler of a
// given cost behind one limiter, over HTTP or gRPC.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	denying "github.com/sluice-go/sluice/httpmw/early"
)

var (
	name      = flag.String("limiter", "none", "the limiter in front of the handler")
	task      = flag.String("work", "5ms", "processor time, +waiting; or mix, json, fanout, bimodal, mutex, proxy, pool-4-50ms")
	perMS     = flag.Int("spin", 0, "steps of work a millisecond, 0: measure")
	rpc       = flag.Bool("grpc", false, "gRPC instead of HTTP")
	tap       = flag.Bool("tap", false, "with a tap handle")
	encrypted = flag.Bool("tls", false, "TLS, with HTTP/2 for clients that can")
	early     = flag.Bool("listener", false, "with a listener that denies before the parse")
	shares    = flag.Bool("shares", false, "with fair shares of the tenants (x-tenant; \"name:4\" has weight 4)")
	backend   = flag.Bool("backend", false, "answer after 5ms, for little processor time: the backend of the proxy")
)

func main() {
	flag.Parse()
	serve := serveHTTP
	switch {
	case *backend:
		serve = serveBackend
	case *perMS == 0:
		fmt.Println(calibrate())
		return
	case *rpc:
		serve = serveRPC
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(ln.Addr())
		err = serve(ln)
	}
	fmt.Fprintln(os.Stderr, "server:", err)
	os.Exit(1)
}

func serveHTTP(ln net.Listener) error {
	h, err := handlerOf(*task)
	if err != nil {
		return err
	}
	mw, l, err := middleware(*name)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: servedHandler(mw(count(h)))}
	switch {
	case *encrypted:
		cert, err := certificate()
		if err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		return srv.ServeTLS(ln, "", "")
	case *early && l != nil:
		return srv.Serve(denying.NewListener(srv, ln, l))
	}
	return srv.Serve(ln)
}

// handlerOf is the handler that does a task.
func handlerOf(task string) (http.Handler, error) {
	if task == "proxy" {
		addr, err := startBackend()
		return proxyTo(addr), err
	}
	w, err := workOf(task)
	return handler(w), err
}

// handler reads the body, works and answers; or streams events.
func handler(w work) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			rw.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			return
		}
		if r.ContentLength != 0 {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		for range costOf(r.Header.Get("X-Cost")) {
			w.do()
		}
		_, _ = fmt.Fprintln(rw, "done")
	})
}
