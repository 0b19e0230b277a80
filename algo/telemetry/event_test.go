package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// An observer is a function. This one prints the response of each request.
func ExampleObserver() {
	users := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(func(e telemetry.Event) {
			fmt.Println(e.Result, e.Status, e.Sent.Limit, e.Sent.RetryAfter > 0)
		}))(http.NotFoundHandler())

	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	// Output:
	// allowed 0 "users";r=1;t=30 false
	// allowed 0 "users";r=0;t=30 false
	// denied 429 "users";r=0;t=30 true
}

// A shadow limit denies no request, and its events show which it would have
// denied.
func ExampleEvent_trial() {
	trial := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))))
	handler := httpmw.Limit(trial, keyfunc.ClientIP(),
		httpmw.WithObserver(func(e telemetry.Event) { fmt.Println(e.Result, e.Decision.Trial) }))(http.NotFoundHandler())

	for range 2 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	// Output:
	// allowed admitted
	// allowed quota
}
