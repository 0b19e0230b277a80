package algo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

func ExampleNewFixedWindow() {
	sends, err := algo.NewFixedWindow(algo.PerDay(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		lease, _ := sends.Acquire(context.Background(), "ann", 1)
		fmt.Println(lease.Allowed, lease.Remaining)
	}
	// Output:
	// true 2
	// true 1
	// true 0
	// false 0
}

// Days that begin at midnight in Tokyo.
func ExampleSpec_alignedTo() {
	tokyo := time.FixedZone("Asia/Tokyo", 9*60*60)
	midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, tokyo)
	spec := algo.Spec{Algorithm: "fixed-window", Rate: algo.PerDay(100), AlignedTo: midnight}
	daily := algo.Must(spec.New())

	lease, _ := daily.Acquire(context.Background(), "ann", 1)
	ends := time.Now().Add(lease.ResetAfter).In(tokyo).Round(time.Minute)
	fmt.Println(ends.Format("15:04"))
	// Output: 00:00
}

func ExampleNewSlidingWindow() {
	l := algo.Must(algo.NewSlidingWindow(algo.PerHour(100)))
	fmt.Println(l.Allow("ann", 60), l.Allow("ann", 60), l.Allow("bob", 60))
	// Output: true false true
}

// Ten cells a minute: no minute whatever holds more than 100 units.
func ExampleCells() {
	l := algo.Must(algo.NewSlidingWindow(algo.PerMinute(100), algo.Cells(10)))
	lease, _ := l.Acquire(context.Background(), "ann", 100)
	fmt.Println(lease.Allowed, lease.Remaining, l.Allow("ann", 1))
	// Output: true 0 false
}

// A log gives each unit back one period after it was spent.
func ExampleNewSlidingLog() {
	l := algo.Must(algo.NewSlidingLog(algo.Per(2, 50*time.Millisecond)))
	fmt.Println(l.Allow("ann", 1), l.Allow("ann", 1), l.Allow("ann", 1))

	lease, _ := algo.Wait(context.Background(), l, "ann", 1)
	fmt.Println(lease.Allowed)
	// Output:
	// true true false
	// true
}

// The cost is known only afterwards: reserve an estimate, then correct it.
func ExampleLease_Settle_window() {
	tokens := algo.Must(algo.NewSlidingWindow(algo.PerHour(1000), algo.Cells(6)))
	lease, _ := tokens.Acquire(context.Background(), "ann", 400)
	lease.Settle(150)
	lease.Release(algo.Succeeded)

	left, _ := tokens.Acquire(context.Background(), "ann", 0)
	fmt.Println(left.Remaining)
	// Output: 850
}

func ExampleRateLimiter_SetRate_window() {
	l := algo.Must(algo.NewFixedWindow(algo.PerHour(10)))
	l.Allow("ann", 5)
	fmt.Println(l.SetRate(algo.PerHour(0)))
	fmt.Println(l.SetRate(algo.PerHour(20)))

	left, _ := l.Acquire(context.Background(), "ann", 0)
	fmt.Println(left.Remaining)
	// Output:
	// algo: fixed window: rate: count is 0, want 1 or more (algo.DenyAll denies everything)
	// <nil>
	// 15
}

func ExampleRateLimiter_Reset() {
	l := algo.Must(algo.NewFixedWindow(algo.PerHour(10)))
	l.Allow("ann", 10)
	fmt.Println(l.Allow("ann", 1), l.Stats().Live)
	l.Reset("ann")
	fmt.Println(l.Allow("ann", 1))
	// Output:
	// false 1
	// true
}
