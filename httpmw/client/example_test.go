package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	tenPerSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(1)))
	c := &http.Client{
		Transport: client.Transport(server.Client().Transport, tenPerSecond, keyfunc.Global()),
		Timeout:   5 * time.Second, // a request that would have to wait longer fails at once
	}
	start := time.Now()
	for range 3 {
		resp, err := c.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println("two waits of 100 ms:", time.Since(start) > 199*time.Millisecond)
	// Output: two waits of 100 ms: true
}

// A crawler remembers the waits that ten thousand servers asked for.
func ExampleWithMaxServers() {
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	c := &http.Client{
		Timeout:   time.Minute, // no caller waits for an hour
		Transport: client.Transport(nil, algo.Unlimited(), keyfunc.Global(), client.WithMaxServers(10_000)),
	}

	for range 2 {
		res, err := c.Get(server.URL)
		if err != nil {
			fmt.Println(errors.Is(err, algo.ErrWait))
			continue
		}
		_ = res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	fmt.Println(served)
	// Output:
	// 429
	// true
	// 1
}

// A client of a service that says in fields of its own when a quota of tokens is back.
func ExampleWithServerWait() {
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served++
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "0")
		w.Header().Set("X-Ratelimit-Reset-Tokens", "6m0s")
	}))
	defer server.Close()
	c := &http.Client{
		Timeout:   time.Minute,
		Transport: client.Transport(nil, algo.Unlimited(), keyfunc.Global(), client.WithServerWait(client.QuotaWait)),
	}

	for range 2 {
		res, err := c.Get(server.URL)
		if err != nil {
			fmt.Println(errors.Is(err, algo.ErrWait))
			continue
		}
		res.Body.Close()
	}
	fmt.Println(served)
	// Output:
	// true
	// 1
}
