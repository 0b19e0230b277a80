package telemetry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestWhy(t *testing.T) {
	reasoned := func(r algo.Reason) algo.Decision { return algo.Decision{Reason: r} }
	trial := func(r algo.Reason) algo.Decision {
		return algo.Decision{Allowed: true, Source: algo.SourceTrial, Trial: r}
	}
	for _, row := range []struct {
		e        telemetry.Event
		why      algo.Reason
		shadowed bool
	}{
		{telemetry.Event{Decision: algo.Decision{Allowed: true}}, algo.Admitted, false},
		{telemetry.Event{Result: telemetry.Denied, Decision: reasoned(algo.Overload)}, algo.Overload, false},
		{telemetry.Event{Result: telemetry.Denied, Decision: reasoned(algo.Never)}, algo.Never, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 429}, algo.Quota, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 14, Transport: telemetry.GRPC}, algo.Overload, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 8, Transport: telemetry.GRPC}, algo.Quota, false},
		{telemetry.Event{Result: telemetry.Denied, Err: fmt.Errorf("wrapped: %w", algo.ErrCost)}, algo.Never, false},
		{telemetry.Event{Decision: trial(algo.Quota)}, algo.Quota, true},
		{telemetry.Event{Decision: trial(algo.Overload)}, algo.Overload, true},
		{telemetry.Event{Decision: trial(algo.Admitted)}, algo.Admitted, false},
		{telemetry.Event{Decision: trial(algo.Quota), Result: telemetry.Denied}, algo.Quota, false},
		{telemetry.Event{Decision: trial(algo.Quota), Result: telemetry.Canceled}, algo.Admitted, false},
		{telemetry.Event{Result: telemetry.FailedClosed, Err: algo.ErrCost}, algo.Admitted, false},
	} {
		require.Equal(t, row.why, row.e.Why(), row.e)
		require.Equal(t, row.shadowed, row.e.Shadowed(), row.e)
	}
}

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
