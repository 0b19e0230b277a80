package telemetry_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// An observer is a function. This one prints what each client was told.
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

// A limit on trial denies nobody, and its events say whom it would have denied.
func ExampleEvent_Shadowed() {
	trial := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))))
	handler := httpmw.Limit(trial, keyfunc.ClientIP(),
		httpmw.WithObserver(func(e telemetry.Event) { fmt.Println(e.Result, e.Shadowed(), e.Why()) }))(http.NotFoundHandler())

	for range 2 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	// Output:
	// allowed false admitted
	// allowed true quota
}

// A client is denied a hundred times, and the log has two lines.
func ExampleNewLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "time" || a.Key == "key" || a.Key == "retry_after" { // they differ from run to run
				return slog.Attr{}
			}
			return a
		},
	}))
	denials, err := telemetry.NewLog(logger, telemetry.LogInterval(time.Minute))
	if err != nil {
		panic(err)
	}
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(denials.Observe))(http.NotFoundHandler())

	for range 101 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	denials.Flush() // when the server has stopped
	// Output:
	// level=INFO msg="requests denied" code=telemetry.denied policy=users transport=http client=false reason=quota count=1 status=429
	// level=INFO msg="requests denied" code=telemetry.denied policy=users transport=http client=false reason=quota count=99
}

func ExampleTee() {
	count := 0
	counting := func(telemetry.Event) { count++ }
	printing := func(e telemetry.Event) { fmt.Println(e.Policy, e.Result) }
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(telemetry.Tee(counting, printing)))(http.NotFoundHandler())

	for range 2 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(count)
	// Output:
	// users allowed
	// users denied
	// 2
}
