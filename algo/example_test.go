package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Three requests at once, and one more every second.
func ExampleNewTokenBucket() {
	users, err := algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		lease, _ := users.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Remaining, lease.RetryAfter.Round(time.Second))
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 1s
}

// A bucket begins full. One that is to begin empty is charged its burst first.
func ExampleNewTokenBucket_empty() {
	replays := algo.Must(algo.NewTokenBucket(algo.PerMinute(30), algo.Burst(5)))
	replays.Allow("", 5)
	lease, _ := replays.Acquire(context.Background(), "", 1)
	fmt.Println(lease.Allowed, lease.RetryAfter.Round(time.Second))
	// Output: false 2s
}

func ExampleRateLimiter_Allow() {
	uploads := algo.Must(algo.NewTokenBucket(algo.PerMinute(10)))
	fmt.Println(uploads.Allow("alice", 8)) // eight at a time
	fmt.Println(uploads.Allow("alice", 8))
	fmt.Println(uploads.Allow("bob", 8))
	// Output:
	// true
	// false
	// true
}

// A limit changes while it runs; spent units stay spent.
func ExampleRateLimiter_SetRate() {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	l.Allow("alice", 10)
	if err := l.SetRate(algo.PerHour(0)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(l.SetRate(algo.PerHour(20)), l.Allow("alice", 1))
	// Output:
	// algo: token bucket: rate: count is 0, want 1 or more (algo.DenyAll denies everything)
	// <nil> false
}

// Units are given back to a key whose lease is gone.
func ExampleRateLimiter_Refund() {
	exports := algo.Must(algo.NewTokenBucket(algo.PerDay(3)))
	fmt.Println(exports.Allow("alice", 3), exports.Allow("alice", 1))
	fmt.Println(exports.Refund("alice", 2)) // two of them failed in the night
	fmt.Println(exports.Allow("alice", 2), exports.Allow("alice", 1))
	// Output:
	// true false
	// 2 <nil>
	// true false
}

// An adapter of another protocol keeps the lease for the handler, as WithLeaseInContext does.
func ExampleWithLease() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	handler := func(ctx context.Context) {
		algo.LeaseFrom(ctx, "tokens").Settle(40) // the true cost
		d, _ := algo.Peek(ctx, algo.LimiterFrom(ctx, "tokens"), "alice", 1)
		fmt.Println(d.Remaining, "left")
	}

	ctx := context.Background()
	chosen, _ := algo.Resolve(ctx, tokens, "alice")
	lease, _ := chosen.Acquire(ctx, "alice", 10) // an estimate
	defer lease.Release(algo.Succeeded)
	handler(algo.WithLease(ctx, &lease, []algo.Limiter{chosen}, "tokens"))
	// Output: 60 left
}
