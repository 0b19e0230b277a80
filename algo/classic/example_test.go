package classic_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/classic"
)

// nginx: limit_req zone=z rate=1r/m burst=3 delay=1;
func ExampleNewNginx() {
	limit := algo.Must(classic.NewNginx(algo.PerMinute(1), 3, 1))
	for range 5 {
		lease, _ := limit.Acquire(context.Background(), "203.0.113.7", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(time.Second))
	}
	// Output:
	// true 0s
	// true 0s
	// true 1m0s
	// true 2m0s
	// false 0s
}

// Guava's acquire(n): a large request starts at once, the next caller pays.
func ExampleNewSmoothBursty() {
	limit := algo.Must(classic.NewSmoothBursty(algo.PerMinute(1), algo.Forever))
	large, _ := limit.Acquire(context.Background(), "job", 10)
	small, _ := limit.Acquire(context.Background(), "job", 1)
	fmt.Println(large.Delay, small.Delay.Round(time.Second))
	// Output: 0s 10m0s
}

// Guava's tryAcquire(n, timeout): callers whose turn comes within the timeout
// wait side by side, the others are denied at once.
func ExampleNewSmoothBursty_timeout() {
	limit := algo.Must(classic.NewSmoothBursty(algo.PerHour(1), 2*time.Hour))
	for range 4 {
		lease, _ := limit.Acquire(context.Background(), "job", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 1h0m0s
	// true 2h0m0s
	// false 0s
}

// A cache ratio lets callers draw on permits that are not there yet: a ratio
// of 3 is a wait of three seconds. The debt here is two seconds' worth.
func ExampleNewSmoothBursty_cacheRatio() {
	for _, ratio := range []float64{0.5, 3} {
		wait := time.Duration(ratio * float64(time.Second))
		limit := algo.Must(classic.NewSmoothBursty(algo.PerSecond(10), wait))
		limit.Allow("api", 20)
		lease, _ := limit.Acquire(context.Background(), "api", 1)
		fmt.Println(ratio, lease.Allowed, lease.Delay.Round(time.Second))
	}
	// Output:
	// 0.5 false 0s
	// 3 true 2s
}

// A limiter that warms up: one permit after the other costs less.
func ExampleNewSmoothWarmingUp() {
	limit := algo.Must(classic.NewSmoothWarmingUp(algo.PerMinute(4), 2*time.Minute, 3, algo.Forever))
	due := time.Duration(0)
	for range 7 {
		lease, _ := limit.Acquire(context.Background(), "db", 1)
		fmt.Print((lease.Delay - due).Round(time.Second), " ")
		due = lease.Delay
	}
	// Output: 0s 41s 34s 26s 19s 15s 15s
}

// At most 10 in any hour: 5 of them at once.
func ExampleNewStrict() {
	l := algo.Must(classic.NewStrict(algo.PerHour(10), 5))
	lease, _ := l.Acquire(context.Background(), "ann", 5)
	fmt.Println(lease.Allowed, lease.Limit)

	lease, _ = l.Acquire(context.Background(), "ann", 1)
	fmt.Println(lease.Allowed, lease.RetryAfter.Round(time.Minute))
	// Output:
	// true 5
	// false 10m0s
}

// A permit of a service that has been idle costs five times as much as one of a
// warm one.
func ExampleNewSmoothWarmingUp_coldFactor() {
	cache := algo.Must(classic.NewSmoothWarmingUp(algo.PerMinute(1), time.Hour, 5, algo.Forever))
	cache.Acquire(context.Background(), "", 1)
	second, _ := cache.Acquire(context.Background(), "", 1)
	fmt.Println(second.Delay > 4*time.Minute, second.Delay < 5*time.Minute)
	// Output: true true
}

// nginx: limit_req zone=z rate=1r/m burst=2 nodelay;
func ExampleNewNginx_nodelay() {
	limit := algo.Must(classic.NewNginx(algo.PerMinute(1), 2, 2))
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
