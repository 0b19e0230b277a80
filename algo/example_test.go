package algo_test

import (
	"context"
	"errors"
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

func ExampleTokenBucket_Allow() {
	uploads := algo.Must(algo.NewTokenBucket(algo.PerMinute(10)))
	fmt.Println(uploads.Allow("alice", 8)) // eight at a time
	fmt.Println(uploads.Allow("alice", 8))
	fmt.Println(uploads.Allow("bob", 8))
	// Output:
	// true
	// false
	// true
}

// Wait sleeps until there is room, and fails at once where the context could
// not wait that long.
func ExampleWait() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(100), algo.Burst(1)))
	for range 3 {
		if _, err := algo.Wait(context.Background(), l, "", 1); err != nil {
			fmt.Println(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := algo.Wait(ctx, l, "", 1)
	fmt.Println(errors.Is(err, algo.ErrWait))
	// Output: true
}

// With MaxWait a limiter shapes: it admits what comes too early, and says when
// to start.
func ExampleMaxWait() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(1), algo.MaxWait(150*time.Millisecond)))
	for range 3 {
		lease, _ := l.Acquire(context.Background(), "", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(10*time.Millisecond))
	}
	// Output:
	// true 0s
	// true 100ms
	// false 0s
}

// A canceled admission gives back what it still weighs.
func ExampleLease_Release() {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	lease, _ := l.Acquire(context.Background(), "alice", 2)
	fmt.Println(lease.Remaining)
	lease.Release(algo.Canceled)

	lease, _ = l.Acquire(context.Background(), "alice", 0) // a peek
	fmt.Println(lease.Remaining)
	// Output:
	// 3
	// 5
}

// The true cost is known only afterwards: reserve an estimate, then settle.
func ExampleLease_Settle() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100_000)))
	lease, _ := tokens.Acquire(context.Background(), "alice", 4000)
	defer lease.Release(algo.Succeeded)
	lease.Settle(1500)

	peek, _ := tokens.Acquire(context.Background(), "alice", 0)
	fmt.Println(peek.Remaining)
	// Output: 98500
}

// A limit changes while it runs; what was spent stays spent.
func ExampleTokenBucket_SetRate() {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	l.Allow("alice", 10)
	if err := l.SetRate(algo.PerHour(0)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(l.SetRate(algo.PerHour(20)), l.Allow("alice", 1))
	// Output:
	// algo: token bucket: rate: count is 0, want 1 or more
	// <nil> false
}

func ExampleDescribe() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	d, _ := algo.Describe(l)
	fmt.Println(d.Quota, d.Unit, "in", d.Window)
	fmt.Println(d)
	// Output:
	// 20 requests in 2s
	// 20-per-2s
}

func ExampleEvery() {
	l := algo.Must(algo.NewTokenBucket(algo.Every(15 * time.Minute)))
	fmt.Println(l.Allow("password reset", 1), l.Allow("password reset", 1))
	// Output: true false
}

// A limit over time has nothing to release; what a wrapper holds is what the
// limiter within holds.
func ExampleOccupiesSlot() {
	users := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerSecond(10))))
	fmt.Println(algo.OccupiesSlot(users))
	// Output: false
}
