package guides_test

import (
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// One limit for each client address, in front of the whole server.
func Example_http() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(2)))
	limit := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithName("client"))

	mux := http.NewServeMux()
	mux.Handle("GET /orders", ok)
	handler := limit(mux)
	for range 3 {
		fmt.Println(get(handler, "/orders", "").Code)
	}
	// Output:
	// 200
	// 200
	// 429
}

// Two limits in one decision, a third for one route, and probes that pass.
func Example_httpRoutes() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	total := algo.Must(algo.NewTokenBucket(algo.PerSecond(500)))
	exports := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	export := ok

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "client", Limiter: perClient, Key: keyfunc.ClientIP()},
		{Name: "total", Limiter: total, Key: keyfunc.Global()},
	}, httpmw.WithSkip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }))

	perRoute := httpmw.Limit(exports, keyfunc.Join(keyfunc.ClientIP(), keyfunc.Route()), httpmw.WithName("export"))

	mux := http.NewServeMux()
	mux.Handle("GET /healthz", ok)
	mux.Handle("GET /export/{id}", perRoute(export))
	handler := limit(mux)

	for _, path := range []string{"/export/1", "/export/2", "/healthz"} {
		w := get(handler, path, "")
		fmt.Println(path, w.Code, w.Header()["Ratelimit-Policy"])
	}
	// Output:
	// /export/1 200 ["client";q=20;w=2, "total";q=500;w=1 "export";q=1;w=3600]
	// /export/2 429 ["client";q=20;w=2, "total";q=500;w=1 "export";q=1;w=3600]
	// /healthz 200 []
}

// Large uploads cost more.
func Example_httpCost() {
	mebibytes := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))

	limit := httpmw.Limit(mebibytes, keyfunc.ClientIP(), httpmw.WithCost(func(r *http.Request) int64 {
		if r.ContentLength < 0 {
			return 100 // of unknown length
		}
		return 1 + r.ContentLength>>20
	}))

	fmt.Println(get(limit(ok), "/", "").Header().Get("RateLimit"))
	// Output: "100-per-hour";r=99;t=36
}
