package guides_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/early"
	"github.com/sluice-go/sluice/keyfunc"
)

// A limit that finds the capacity, inside the limit per user.
func Example_overload() {
	mux := http.NewServeMux()
	mux.Handle("GET /orders", ok)
	perClient := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20))), keyfunc.ClientIP())

	capacity, err := adaptive.New(adaptive.Default())
	if err != nil {
		log.Fatal(err)
	}
	protect := httpmw.Limit(capacity, keyfunc.Global(), httpmw.WithName("capacity"))
	handler := perClient(protect(mux))

	fmt.Println(get(handler, "/orders", "").Code, capacity.Explain().Denied.Processor)
	// Output: 200 0
}

// Less important requests are denied first.
func Example_priorities() {
	mux := http.NewServeMux()
	mux.Handle("GET /orders", ok)

	capacity, err := adaptive.New(adaptive.Default(), adaptive.WithPriorities())
	if err != nil {
		log.Fatal(err)
	}
	handler := classify(httpmw.Limit(capacity, keyfunc.Global(), httpmw.WithName("capacity"))(mux))

	fmt.Println(get(handler, "/orders", "").Code)
	// Output: 200
}

// classify sets the importance of a request. The server decides, not the
// client.
func classify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class := adaptive.Normal
		switch r.URL.Path {
		case "/checkout":
			class = adaptive.Critical
		case "/report":
			class = adaptive.Sheddable
		}
		next.ServeHTTP(w, r.WithContext(adaptive.WithClass(r.Context(), class)))
	})
}

// The capacity is known: 50 connections of a pool, and a short queue.
func Example_overloadFixed() {
	database, err := adaptive.New(adaptive.Fixed(50), adaptive.WithQueue(adaptive.CoDel(100, 0, 0)))
	if err != nil {
		log.Fatal(err)
	}

	query := func(ctx context.Context) error {
		lease, err := database.Acquire(ctx, "", 1)
		if err != nil {
			return err
		}
		if !lease.Allowed {
			return errBusy
		}
		outcome := algo.Failed
		defer func() { lease.Release(outcome) }()
		// ... the query
		outcome = algo.Succeeded
		return nil
	}

	fmt.Println(query(context.Background()), database.InFlight())
	// Output: <nil> 0
}

var errBusy = fmt.Errorf("the database is busy")

// The log says when a limit begins or ends, and why.
func Example_hook() {
	l := algo.Must(adaptive.New(adaptive.Default(adaptive.WithHook(func(s adaptive.State) {
		slog.Info("limit", "strategy", s.Name, "limit", s.Limit, "overloaded", s.Overloaded, "why", s.Cause)
	}))))
	lease, err := l.Acquire(context.Background(), "", 1)
	fmt.Println(lease.Allowed, err)
	// Output: true <nil>
}

// A client spares a backend that rejects its calls.
func Example_throttle() {
	backend := algo.Must(throttle.New())
	call := func() error {
		lease, err := backend.Acquire(context.Background(), "", 1)
		if err != nil || !lease.Allowed {
			return errBusy
		}
		err = send()
		if err != nil {
			lease.Release(algo.Failed)
			return err
		}
		lease.Release(algo.Succeeded)
		return nil
	}

	fmt.Println(call())
	// Output: <nil>
}

func send() error { return nil }

// earlyDenials denies at the socket, for handlers of some 0.1 ms.
func earlyDenials(ln net.Listener, capacity algo.Limiter, handler http.Handler) error {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return srv.Serve(early.NewListener(srv, ln, capacity, "/healthz"))
}

var _ = earlyDenials
