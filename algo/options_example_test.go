package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// A permit of a service that has been idle costs five times as much as one of a
// warm one.
func ExampleColdFactor() {
	cache := algo.Must(algo.NewSmoothWarmingUp(algo.PerMinute(1), time.Hour,
		algo.ColdFactor(5), algo.MaxWait(algo.Forever)))
	cache.Acquire(context.Background(), "", 1)
	second, _ := cache.Acquire(context.Background(), "", 1)
	fmt.Println(second.Delay > 4*time.Minute, second.Delay < 5*time.Minute)
	// Output: true true
}

// A key that pays its hour's quota off may then send more at once.
func ExampleTokenBucket_SetBurst() {
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

// nginx: limit_req zone=z rate=1r/m burst=2 nodelay;
func ExampleNoDelay() {
	limit := algo.Must(algo.NewNginx(algo.PerMinute(1), algo.Burst(2), algo.NoDelay()))
	for range 4 {
		lease, _ := limit.Acquire(context.Background(), "203.0.113.7", 1)
		fmt.Println(lease.Allowed, lease.Delay)
	}
	// Output:
	// true 0s
	// true 0s
	// true 0s
	// false 0s
}

// Two instances of a service whose windows do not begin at the same time.
func ExampleOffset() {
	first := algo.Must(algo.NewFixedWindow(algo.PerHour(100)))
	second := algo.Must(algo.NewFixedWindow(algo.PerHour(100), algo.Offset(30*time.Minute)))
	for _, l := range []algo.Limiter{first, second} {
		lease, _ := l.Acquire(context.Background(), "", 1)
		fmt.Println(lease.ResetAfter.Round(time.Minute))
	}
	// Output:
	// 1h0m0s
	// 30m0s
}

// Ten users whose quotas are there again at ten different times.
func ExampleSpread() {
	daily := algo.Must(algo.NewFixedWindow(algo.PerDay(100), algo.Spread()))
	edges := map[time.Duration]bool{}
	for user := range 10 {
		lease, _ := daily.Acquire(context.Background(), fmt.Sprint("user-", user), 1)
		edges[lease.ResetAfter.Round(time.Second)] = true
	}
	fmt.Println(len(edges) > 5)
	// Output: true
}
