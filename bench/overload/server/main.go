// Command server is what the overload measurement overloads: one handler of a
// given cost behind one limiter, over HTTP or gRPC.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	limiter := flag.String("limiter", "none", "the limiter in front of the handler")
	task := flag.String("work", "5ms", "processor time, +waiting; or mix")
	perMS := flag.Int("spin", 0, "steps of work a millisecond, 0: measure")
	rpc := flag.Bool("grpc", false, "gRPC instead of HTTP")
	tap := flag.Bool("tap", false, "with a tap handle")
	flag.Parse()
	if *perMS == 0 {
		fmt.Println(calibrate())
		return
	}
	if err := serve(*limiter, *task, *perMS, *rpc, *tap); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func serve(limiter, task string, perMS int, rpc, tap bool) error {
	w, err := workOf(task, perMS)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	if rpc {
		return serveRPC(ln, limiter, w, tap)
	}
	mw, _, err := middleware(limiter)
	if err != nil {
		return err
	}
	http.Handle("/", mw(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.do()
		_, _ = fmt.Fprintln(rw, "done")
	})))
	return http.Serve(ln, nil)
}
