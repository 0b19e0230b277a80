package adaptive_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// At most one request per user, and at most two users at a time.
func ExampleWithMaxKeys() {
	l := algo.Must(adaptive.PerKey(1, adaptive.WithMaxKeys(2)))
	for _, user := range []string{"ann", "bob", "cid"} {
		lease, _ := l.Acquire(ctx, user, 1)
		defer lease.Release(algo.Succeeded)
		fmt.Println(user, lease.Allowed, lease.Reason)
	}
	// Output:
	// ann true admitted
	// bob true admitted
	// cid false overload
}

// A line of the log for each limit that begins or ends.
func ExampleWithHook() {
	l := algo.Must(adaptive.New(adaptive.Default(adaptive.WithHook(func(s adaptive.State) {
		slog.Info("limit", "strategy", s.Name, "limit", s.Limit, "overloaded", s.Overloaded, "why", s.Cause)
	}))))
	fmt.Println(l.Limit() > 1000)
	// Output: true
}

// A request that turns out to be as much work as five.
func ExampleLimiter_Settle() {
	l := algo.Must(adaptive.New(adaptive.Fixed(10)))
	lease, _ := l.Acquire(ctx, "", 1)
	lease.Settle(5)
	fmt.Println(l.InFlight())
	lease.Release(algo.Succeeded)
	fmt.Println(l.InFlight())
	// Output:
	// 5
	// 0
}

// A client that takes an hour to read is not counted meanwhile. httpmw and grpcmw
// do this for bodies, responses and streams.
func ExampleLimiter_AwaitClient() {
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 1)))
	download, _ := l.Acquire(ctx, "", 1)
	defer download.Release(algo.Succeeded | algo.Untimed)

	download.AwaitClient(true)
	lease, _ := l.Acquire(ctx, "", 1)
	fmt.Println(lease.Allowed, l.InFlight())
	lease.Release(algo.Succeeded)

	download.AwaitClient(false)
	lease, _ = l.Acquire(ctx, "", 1)
	fmt.Println(lease.Allowed, l.InFlight())
	// Output:
	// true 2
	// false 1
}

// For a service that needs its own processors, with callers that give up after a
// second.
func ExampleRunQueue() {
	queue := adaptive.RunQueue(adaptive.WithTarget(time.Second))
	l := algo.Must(adaptive.New(queue))
	lease, _ := l.Acquire(ctx, "", 1)
	defer lease.Release(algo.Succeeded)
	fmt.Println(lease.Allowed)
	// Output: true
}

// For a service with an unknown bottleneck.
func ExampleDefault() {
	l := algo.Must(adaptive.New(adaptive.Default()))
	handler := httpmw.Limit(l, keyfunc.Global())(http.NotFoundHandler())

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, l.InFlight())
	// Output: 404 0
}

// Premium tenants get four times the share of the others while there is overload; the
// tenant is the key of the request.
func ExampleWithFairShares() {
	premium := map[string]bool{"acme": true}
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithFairShares(func(tenant string) float64 {
		if premium[tenant] {
			return 4
		}
		return 1
	})))
	lease, err := l.Acquire(context.Background(), "acme", 1)
	if err != nil {
		return
	}
	defer lease.Release(algo.Succeeded)
	fmt.Println(lease.Allowed)
	// Output: true
}

// A limiter that grpcmw gets in a wrapper, here on trial, is told that requests share
// connections.
func ExampleLimiter_Multiplexed() {
	l, err := adaptive.New(adaptive.Default())
	if err != nil {
		panic(err)
	}
	l.Multiplexed()
	lease, err := algo.Shadow(l).Acquire(context.Background(), "", 1)
	lease.Release(algo.Succeeded)
	fmt.Println(lease.Allowed, err)
	// Output: true <nil>
}

// A handler that acquires by itself tells the limiter what each request came over, as httpmw does.
func ExampleLimiter_SharesConnection() {
	l, err := adaptive.New(adaptive.Default())
	if err != nil {
		panic(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.SharesConnection(r.ProtoMajor > 1)
		lease, err := l.Acquire(r.Context(), "", 1)
		if err != nil || !lease.Allowed {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer lease.Release(algo.Succeeded)
		_, _ = io.WriteString(w, "served")
	})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Body)
	// Output: served
}

// The tenants that caused an overload, for a log or a dashboard.
func ExampleLimiter_Tenants() {
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 1), adaptive.WithFairShares(nil)))
	ctx := context.Background()
	lease, _ := l.Acquire(ctx, "acme", 1)
	defer lease.Release(algo.Succeeded)
	for range 4 { // the first one begins the overload
		_, _ = l.Acquire(ctx, "flood", 1)
	}
	_, _ = l.Acquire(ctx, "acme", 1)
	for _, t := range l.Tenants(10) {
		fmt.Printf("%s asked for %.0f %%, %.0f %% of that admitted\n", t.Tenant, 100*t.Asked, 100*t.Admitted)
	}
	// Output:
	// flood asked for 75 %, 0 % of that admitted
	// acme asked for 25 %, 0 % of that admitted
}

// A test of what a limiter says while work takes a minute, which takes no time.
func ExampleWithClock() {
	now := time.Unix(0, 0)
	l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithClock(func() time.Time { return now })))
	lease, _ := l.Acquire(ctx, "", 1)
	now = now.Add(time.Minute)
	lease.Release(algo.Succeeded)
	lease, _ = l.Acquire(ctx, "", 1)
	defer lease.Release(algo.Succeeded)
	denied, _ := l.Acquire(ctx, "", 1)
	fmt.Println(denied.RetryAfter.Round(time.Second))
	// Output: 1m0s
}
