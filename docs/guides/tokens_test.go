package guides_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// An estimate is reserved, the work runs, and the true cost is settled.
func Example_settle() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerMinute(10_000)))

	lease, err := tokens.Acquire(context.Background(), "alice", 4000) // the estimate
	if err != nil || !lease.Allowed {
		return // to try again: algo.Sleep(ctx, lease.RetryAfter)
	}
	defer lease.Release(algo.Succeeded)
	used := int64(1500) // known when the work is done
	lease.Settle(used)

	left := algo.Must(tokens.Acquire(context.Background(), "alice", 0))
	fmt.Println(left.Remaining)
	// Output: 8500
}

// The learned estimate is reserved.
func Example_estimates() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerMinute(100_000)))
	estimator := algo.Must(meter.NewEstimator(0.9, 100, 10_000))
	ctx, size, most := context.Background(), int64(200), int64(4000)
	complete := func() int64 { return 800 }

	call := func() {
		n := estimator.Estimate("large-model", "alice", size, most)
		lease, err := tokens.Acquire(ctx, "alice", n)
		if err != nil || !lease.Allowed {
			return
		}
		defer lease.Release(algo.Succeeded)
		used := complete()
		lease.Settle(used)
		estimator.Learn("large-model", "alice", size, used)
	}
	for range 10 {
		call()
	}

	fmt.Println(estimator.Estimate("large-model", "alice", 100, most))
	// Output: 400
}

// Requests, tokens and streams in flight, all or none, over HTTP.
func Example_tokensHTTP() {
	requests := algo.Must(algo.NewTokenBucket(algo.PerMinute(60)))
	tokens := algo.Must(algo.NewTokenBucket(algo.PerMinute(10_000)))
	streams := algo.Must(adaptive.PerKey(5))

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "requests", Limiter: requests, Key: keyfunc.Context(userOf)},
		{Name: "tokens", Limiter: tokens, Key: keyfunc.Context(userOf), Cost: estimate},
		{Name: "streams", Limiter: streams, Key: keyfunc.Context(userOf)},
	}, httpmw.WithLeaseInContext())
	complete := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		used := int64(700)
		algo.LeaseFrom(r.Context(), "tokens").Settle(used)
	})

	handler := authenticate(limit(complete))
	fmt.Println(get(handler, "/", "key-a").Header().Get("RateLimit"))
	second := get(handler, "/", "key-a").Header().Get("RateLimit") // 10000 - 700 - 2000, and what came back meanwhile
	fmt.Println(strings.Contains(second, `"tokens";r=73`))
	// Output:
	// "requests";r=59;t=1, "tokens";r=8000;t=1, "streams";r=4
	// true
}

// estimate returns the largest cost of a request.
func estimate(*http.Request) int64 { return 2000 }

// Money in the smallest unit: a budget of a day in thousandths of a cent.
func Example_budget() {
	budget := algo.Must(algo.NewFixedWindow(algo.PerDay(500_000))) // 5.00 a day
	spend := func(cost int64) error {
		lease, err := budget.Acquire(context.Background(), "acme", cost)
		switch {
		case err != nil:
			return err
		case lease.Reason == algo.Never:
			return errors.New("more than the budget of a day")
		case !lease.Allowed:
			return errors.New("the budget is spent")
		}
		return nil
	}

	fmt.Println(spend(400_000), spend(200_000), spend(600_000))
	// Output: <nil> the budget is spent more than the budget of a day
}
