package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// A leaky bucket as a meter: units that would overflow it are denied.
func ExampleLeakyBucket() {
	bucket := algo.Must(algo.NewLeakyBucket(algo.PerMinute(1), algo.Burst(2)))
	fmt.Println(bucket.Allow("user", 1), bucket.Allow("user", 1), bucket.Allow("user", 1))
	// Output: true true false
}

// A leaky bucket as a queue: requests that come too early start later.
func ExamplePacer() {
	line := algo.Must(algo.NewPacer(algo.Every(time.Hour), algo.MaxQueue(2)))
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
func ExamplePacer_Refund() {
	line := algo.Must(algo.NewPacer(algo.Every(time.Hour), algo.MaxQueue(2)))
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
	// <nil>
	// 1h0m0s
}

// A token bucket that takes several tokens at a time: all of them or none.
func ExampleTokenBucket_takingN() {
	bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	fmt.Println(bucket.Allow("user", 7), bucket.Allow("user", 7), bucket.Allow("user", 3))
	// Output: true false true
}

// nginx: limit_req zone=z rate=1r/m burst=3 delay=1;
func ExampleNginx() {
	limit := algo.Must(algo.NewNginx(algo.PerMinute(1), algo.Burst(3), algo.DelayAfter(1)))
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
func ExampleSmoothBursty() {
	limit := algo.Must(algo.NewSmoothBursty(algo.PerMinute(1), algo.MaxWait(algo.Forever)))
	large, _ := limit.Acquire(context.Background(), "job", 10)
	small, _ := limit.Acquire(context.Background(), "job", 1)
	fmt.Println(large.Delay, small.Delay.Round(time.Second))
	// Output: 0s 10m0s
}

// Guava's tryAcquire(n, timeout): callers whose turn comes within the timeout
// wait side by side, the others are denied at once.
func ExampleSmoothBursty_timeout() {
	limit := algo.Must(algo.NewSmoothBursty(algo.PerHour(1), algo.MaxWait(2*time.Hour)))
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
// of 3 is a MaxWait of three seconds. The debt here is two seconds' worth.
func ExampleSmoothBursty_cacheRatio() {
	for _, ratio := range []float64{0.5, 3} {
		wait := time.Duration(ratio * float64(time.Second))
		limit := algo.Must(algo.NewSmoothBursty(algo.PerSecond(10), algo.MaxWait(wait)))
		limit.Allow("api", 20)
		lease, _ := limit.Acquire(context.Background(), "api", 1)
		fmt.Println(ratio, lease.Allowed, lease.Delay.Round(time.Second))
	}
	// Output:
	// 0.5 false 0s
	// 3 true 2s
}

// A limiter that warms up: one permit after the other costs less.
func ExampleSmoothWarmingUp() {
	limit := algo.Must(algo.NewSmoothWarmingUp(algo.PerMinute(4), 2*time.Minute, algo.MaxWait(algo.Forever)))
	due := time.Duration(0)
	for range 7 {
		lease, _ := limit.Acquire(context.Background(), "db", 1)
		fmt.Print((lease.Delay - due).Round(time.Second), " ")
		due = lease.Delay
	}
	// Output: 0s 41s 34s 26s 19s 15s 15s
}

// A single rate marker: the length of a burst decides.
func ExampleNewSRTCM() {
	marker, err := algo.NewSRTCM(algo.PerHour(100), 300, 200)
	if err != nil {
		panic(err)
	}
	for _, n := range []int64{300, 150, 100} {
		color, _ := marker.Mark(context.Background(), "tenant", n, algo.Green)
		fmt.Println(n, color)
	}
	// Output:
	// 300 green
	// 150 yellow
	// 100 red
}

// A two rate marker: the edge marks, the service re-marks and is never greener.
func ExampleNewTRTCM() {
	edge, err := algo.NewTRTCM(algo.PerHour(100), 200, algo.PerHour(400), 500)
	if err != nil {
		panic(err)
	}
	service, err := algo.NewTRTCM(algo.PerHour(100), 500, algo.PerHour(400), 300)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, n := range []int64{200, 200, 200} {
		first, _ := edge.Mark(ctx, "tenant", n, algo.Green)
		second, _ := service.Mark(ctx, "tenant", n, first)
		fmt.Println(first, second)
	}
	// Output:
	// green green
	// yellow red
	// red red
}

// RFC 4115: excess of its own, whatever the committed rate is.
func ExampleNewRFC4115() {
	marker, err := algo.NewRFC4115(algo.PerHour(100), 100, algo.PerHour(10), 50)
	if err != nil {
		panic(err)
	}
	for range 3 {
		color, _ := marker.Mark(context.Background(), "tenant", 50, algo.Green)
		fmt.Print(color, " ")
	}
	color, _ := marker.Mark(context.Background(), "tenant", 50, algo.Green)
	fmt.Println(color)
	// Output: green green yellow red
}

// Two limiters over one marker: cheap work passes while it is Yellow.
func ExampleFromMarker() {
	marker, err := algo.NewSRTCM(algo.PerHour(1), 1, 1)
	if err != nil {
		panic(err)
	}
	dear, cheap := algo.FromMarker(marker, algo.Green), algo.FromMarker(marker, algo.Yellow)
	for _, l := range []algo.Limiter{dear, dear, cheap, cheap} {
		lease, _ := l.Acquire(context.Background(), "user", 1)
		fmt.Print(lease.Allowed, " ")
	}
	// Output: true false true false
}
