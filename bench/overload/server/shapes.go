package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// shaped is the work of a handler that does more than compute; nil if there is none of that
// name.
func shaped(name string) func() {
	cpu := func(d time.Duration) { work{cpu: d}.do() }
	switch name {
	case "json":
		return document
	case "fanout":
		return func() {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { cpu(time.Millisecond) })
			}
			all.Wait()
		}
	case "bimodal":
		return func() {
			if turn.Add(1)%10 == 0 {
				cpu(20 * time.Millisecond)
				return
			}
			cpu(200 * time.Microsecond)
		}
	case "mutex":
		return func() {
			cpu(500 * time.Microsecond)
			shared.Lock()
			defer shared.Unlock()
			cpu(500 * time.Microsecond)
		}
	}
	var conns int
	var each string
	if n, _ := fmt.Sscanf(name, "pool-%d-%s", &conns, &each); n == 2 {
		if d, err := time.ParseDuration(each); err == nil {
			return pool(conns, d)
		}
	}
	return nil
}

// pool waits for one of some connections, and then for it, whether its client is still there or not.
func pool(conns int, each time.Duration) func() {
	free := make(chan struct{}, conns)
	return func() {
		free <- struct{}{}
		time.Sleep(each)
		<-free
	}
}

var shared sync.Mutex

// order is a document of some kilobytes.
var order = []byte(`{"items":[` + strings.TrimSuffix(strings.Repeat(
	`{"id":"7f3a-22","name":"a thing with a name","tags":["red","round","new"],"price":19.95,"stock":{"north":3,"south":0}},`, 40), ",") + `]}`)

// document decodes a document and encodes it again, which leaves some 600 objects behind.
func document() {
	var v any
	err := json.Unmarshal(order, &v)
	if err == nil {
		_, err = json.Marshal(v)
	}
	if err != nil {
		panic(err)
	}
}

// proxyTo passes requests on to a backend.
func proxyTo(addr string) http.Handler {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	p.Transport = &http.Transport{MaxIdleConnsPerHost: 10_000, DisableCompression: true}
	p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	return p
}

var served atomic.Int64

// count counts the requests that the handler serves.
func count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		served.Add(1)
	})
}

// servedHandler answers how many requests were served.
func servedHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/served" {
			_, _ = fmt.Fprint(w, served.Load())
			return
		}
		next.ServeHTTP(w, r)
	})
}
