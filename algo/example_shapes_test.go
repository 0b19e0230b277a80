package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// A leaky bucket as a meter: units that would overflow it are denied.
func ExampleNewLeakyBucket() {
	bucket := algo.Must(algo.NewLeakyBucket(algo.PerMinute(1), algo.Burst(2)))
	fmt.Println(bucket.Allow("user", 1), bucket.Allow("user", 1), bucket.Allow("user", 1))
	// Output: true true false
}

// A leaky bucket as a queue: requests that come too early start later.
func ExampleNewPacer() {
	line := algo.Must(algo.NewPacer(algo.Every(time.Hour), algo.MaxWait(2*time.Hour)))
	for range 4 {
		lease, _ := line.Acquire(context.Background(), "printer", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 1h0m0s
	// true 2h0m0s
	// false 0s
}

// A job whose lease is gone leaves the line.
func ExampleRateLimiter_Refund_pacer() {
	line := algo.Must(algo.NewPacer(algo.Every(time.Hour), algo.MaxWait(2*time.Hour)))
	for i := range 3 {
		lease, _ := line.Acquire(context.Background(), "printer", 1)
		fmt.Println(lease.Delay.Round(time.Minute))
		if i == 1 {
			fmt.Println(line.Refund("printer", 1))
		}
	}
	// Output:
	// 0s
	// 1h0m0s
	// 1 <nil>
	// 1h0m0s
}

// A token bucket that takes several tokens at a time: all of them or none.
func ExampleNewTokenBucket_takingN() {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	fmt.Println(bucket.Allow("user", 7), bucket.Allow("user", 7), bucket.Allow("user", 3))
	// Output: true false true
}
