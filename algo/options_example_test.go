package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// A key that pays its hour's quota off may then send more at once.
func ExampleRateLimiter_SetBurst() {
	uploads := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	fmt.Println(uploads.Allow("ann", 20))
	if err := uploads.SetBurst(20); err != nil {
		fmt.Println(err)
	}
	fmt.Println(uploads.Allow("bob", 20), uploads.SetBurst(-1))
	// Output:
	// false
	// true algo: token bucket: burst is -1, want 1 or more
}

// At most three missed calls may be made up for.
func ExampleSlack() {
	calls := algo.Must(algo.NewPacer(algo.PerHour(1), algo.Slack(3), algo.MaxWait(time.Hour)))
	for range 5 {
		lease, _ := calls.Acquire(context.Background(), "", 1)
		fmt.Println(lease.Delay.Round(time.Minute))
	}
	// Output:
	// 0s
	// 0s
	// 0s
	// 0s
	// 1h0m0s
}

// Two instances of a service whose windows do not begin at the same time.
func ExampleSpec_offset() {
	first := algo.Must(algo.NewFixedWindow(algo.PerHour(100)))
	second := algo.Must(algo.Must(algo.Parse("fixed-window 100/h offset 30m")).New())
	for _, l := range []algo.Limiter{first, second} {
		lease, _ := l.Acquire(context.Background(), "", 1)
		fmt.Println(lease.ResetAfter.Round(time.Minute))
	}
	// Output:
	// 1h0m0s
	// 30m0s
}

// Ten users whose quotas are there again at ten different times.
func ExampleSpec_spread() {
	daily := algo.Must(algo.Must(algo.Parse("fixed-window 100/day spread")).New())
	edges := map[time.Duration]bool{}
	for user := range 10 {
		lease, _ := daily.Acquire(context.Background(), fmt.Sprint("user-", user), 1)
		edges[lease.ResetAfter.Round(time.Second)] = true
	}
	fmt.Println(len(edges) > 5)
	// Output: true
}

// A test that does not wait for an hour.
func ExampleClock() {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	calls := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Clock(func() time.Time { return now })))
	fmt.Println(calls.Allow("ann", 1), calls.Allow("ann", 1))
	now = now.Add(time.Hour)
	fmt.Println(calls.Allow("ann", 1))
	// Output:
	// true false
	// true
}
