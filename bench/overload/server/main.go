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

func main() {
	limiter := flag.String("limiter", "none", "the limiter in front of the handler")
	task := flag.String("work", "5ms", "processor time, +waiting; or mix, json, fanout, bimodal, mutex, proxy, pool-4-50ms")
	perMS := flag.Int("spin", 0, "steps of work a millisecond, 0: measure")
	rpc := flag.Bool("grpc", false, "gRPC instead of HTTP")
	tap := flag.Bool("tap", false, "with a tap handle")
	encrypted := flag.Bool("tls", false, "TLS, with HTTP/2 for clients that can")
	early := flag.Bool("listener", false, "with a listener that denies before the parse")
	flag.BoolVar(&shares, "shares", false, "with fair shares of the tenants (x-tenant; \"name:4\" has weight 4)")
	flag.BoolVar(&classes, "classes", false, "with priorities (priority)")
	price := flag.String("price", "", "deny every request in this way, to measure its cost")
	backend := flag.Bool("backend", false, "answer after 5ms, for little processor time: the backend of the proxy")
	flag.Parse()
	if *backend {
		exit(listen(serveBackend))
	}
	if *price != "" {
		exit(listen(func(ln net.Listener) error { return servePrice(ln, *price) }))
	}
	if *perMS == 0 {
		fmt.Println(calibrate())
		return
	}
	exit(serve(*limiter, *task, *perMS, *rpc, *tap, *encrypted, *early))
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "server:", err)
	os.Exit(1)
}

// listen says where, and serves.
func listen(do func(net.Listener) error) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return do(ln)
}

func serve(limiter, task string, perMS int, rpc, tap, encrypted, early bool) error {
	h, w, err := handlerOf(task, perMS)
	if err != nil {
		return err
	}
	if rpc {
		return listen(func(ln net.Listener) error { return serveRPC(ln, limiter, w, tap) })
	}
	return listen(func(ln net.Listener) error { return serveHTTP(ln, limiter, h, encrypted, early) })
}

func serveHTTP(ln net.Listener, limiter string, h http.Handler, encrypted, early bool) error {
	mw, l, err := middleware(limiter)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: servedHandler(mw(count(h)))}
	switch {
	case encrypted:
		cert, err := certificate()
		if err != nil {
			return err
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		return srv.ServeTLS(ln, "", "")
	case early && l != nil:
		return srv.Serve(denying.NewListener(srv, ln, l))
	}
	return srv.Serve(ln)
}

// handlerOf is the handler that does a task, and its work.
func handlerOf(task string, perMS int) (http.Handler, work, error) {
	if task == "proxy" {
		addr, err := startBackend()
		return proxyTo(addr), work{}, err
	}
	w, err := workOf(task, perMS)
	return handler(w), w, err
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
