package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
)

// body is the answer of the upstream, of the size of a small JSON object.
var body = []byte(`{"id":"5f1c","name":"example","tags":["a","b","c"],"score":17,"note":"about a hundred bytes of JSON here"}` + "\n")

// serveUpstream answers at once, and counts; /count returns the number.
func serveUpstream() error {
	var served atomic.Int64
	return serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/count" {
			fmt.Fprint(w, served.Load())
			return
		}
		served.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // a client that is gone is counted all the same
	}))
}

// serveBare is a reverse proxy and nothing else.
func serveBare(upstream string) error {
	u, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	return serve(&httputil.ReverseProxy{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		Rewrite:   func(pr *httputil.ProxyRequest) { pr.SetURL(u); pr.SetXForwarded() },
	})
}

// serve says where it listens in the words of the gateway.
func serve(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("serving listen=%s\n", l.Addr())
	return http.Serve(l, h)
}
