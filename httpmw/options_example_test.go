package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/metered"
	"github.com/sluice-go/sluice/keyfunc"
)

// Probes are not limited.
func ExampleWithSkip() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithSkip(func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, "/health")
	}))(http.NotFoundHandler())

	for _, path := range []string{"/orders", "/orders", "/healthz", "/healthz"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /orders 404
	// /orders 429
	// /healthz 404
	// /healthz 404
}

// The cost of a request is known when its body is read.
func ExampleAnswer() {
	rows := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	export := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, n := "alice", int64(800) // read from the request
		lease, _ := rows.Acquire(r.Context(), user, n)
		if !httpmw.Answer(w, r, rows, user, lease.Decision, httpmw.WithName("rows")) {
			return
		}
		defer lease.Release(algo.Succeeded)
	})

	for range 2 {
		w := httptest.NewRecorder()
		export.ServeHTTP(w, httptest.NewRequest("POST", "/export", nil))
		fmt.Println(w.Code, w.Header()["Ratelimit-Policy"])
	}
	// Output:
	// 200 ["rows";q=1000;w=3600]
	// 429 ["rows";q=1000;w=3600]
}

// broken is a limiter whose backend fails.
type broken struct{}

func (broken) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.Lease{}, errors.New("out of order")
}

// Requests that cannot be decided are served rather than refused.
func ExampleWithFailOpen() {
	for _, opts := range [][]httpmw.Option{nil, {httpmw.WithFailOpen()}} {
		handler := httpmw.Limit(broken{}, keyfunc.Global(), opts...)(http.NotFoundHandler())
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 503
	// 404
}

// Clients that wait for news show nothing about the service: the handler of a long poll
// waits for its client.
func ExampleWithLeaseInContext_longPoll() {
	l := algo.Must(adaptive.New(adaptive.Default()))
	news := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		algo.LeaseFrom(r.Context()).AwaitClient(true)
		e := l.Explain()
		fmt.Println(e.InFlight, e.AtClient)
	})
	handler := httpmw.Limit(l, keyfunc.Global(), httpmw.WithLeaseInContext())(news)

	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/news", nil))
	// Output:
	// 1 1
}

// A request without the tenant that it is for is a bad request.
func ExampleWithMissingKey_status() {
	perTenant := algo.Must(algo.NewTokenBucket(algo.PerMinute(60)))
	handler := httpmw.Limit(perTenant, keyfunc.Header("X-Tenant"),
		httpmw.WithMissingKey(http.StatusBadRequest))(http.NotFoundHandler())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 400 {"type":"about:blank","title":"The request lacks the identity that its limit counts by","status":400}
}

// The bytes of a response are charged while it is written.
func ExampleWithLeaseInContext_meter() {
	bytes := algo.Must(algo.NewTokenBucket(algo.PerMinute(1_000_000)))
	limit := httpmw.Limit(bytes, keyfunc.ClientIP(), httpmw.WithName("bytes"), httpmw.WithLeaseInContext())
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := metered.New(r.Context(), w, metered.Metering{
			Meter: meter.From(r.Context(), "bytes", 4096),
			Units: func(chunk []byte) int64 { return int64(len(chunk)) },
		})
		defer out.Close()
		fmt.Fprint(out, "a page")
	}))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Header().Get("RateLimit-Policy"), w.Body)
	// Output: "bytes";q=1000000;w=60 a page
}
