package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
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

// Why was this request denied? One line of log says it, and the problem details if the server wants.
func ExampleWithCause() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	denials, _ := eventlog.New(logger)
	limit := httpmw.Limit(algo.Must(adaptive.New(adaptive.Fixed(1))), keyfunc.Global(), httpmw.WithName("slots"),
		httpmw.WithObserver(denials.Observe), httpmw.WithCause())
	var handler http.Handler
	handler = limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(context.Background())) // a second request at the same time
		fmt.Print(w.Body)
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output:
	// level=INFO msg="requests denied" code=telemetry.denied policy=slots transport=http client=false reason=overload cause=limit count=1 status=503
	// {"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,"violated-policies":["slots"],"cause":"limit"}
}

// withoutTime leaves out what differs from run to run.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "time" || a.Key == "retry_after" {
		return slog.Attr{}
	}
	return a
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
