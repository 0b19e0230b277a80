package adaptive_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

var ctx = context.Background()

// At most two units in flight.
func ExampleNew() {
	l := algo.Must(adaptive.New(adaptive.Fixed(2)))
	defer l.Close()
	for range 3 {
		lease, _ := l.Acquire(ctx, "", 1)
		defer lease.Release(algo.Succeeded)
		fmt.Println(lease.Allowed, lease.Reason, l.InFlight())
	}
	// Output:
	// true admitted 1
	// true admitted 2
	// false overload 2
}

// The slot is freed however the work ends.
func ExampleLimiter_Acquire() {
	l := algo.Must(adaptive.New(adaptive.Fixed(1)))
	handle := func() {
		lease, err := l.Acquire(ctx, "", 1)
		if err != nil || !lease.Allowed {
			return
		}
		outcome := algo.Failed
		defer func() { lease.Release(outcome) }()
		panic("handler")
	}
	func() {
		defer func() { recover() }()
		handle()
	}()
	fmt.Println(l.InFlight())
	// Output: 0
}

func ExampleLimiter_Explain() {
	aimd := strategy.AIMD()
	l := algo.Must(adaptive.New(adaptive.Min(adaptive.Fixed(1), aimd)))
	l.Acquire(ctx, "", 1)
	l.Acquire(ctx, "", 1)
	fmt.Println(l.Explain())
	fmt.Println(l.Explain().Denied.Limit)
	// Output:
	// limit 1, 1 in flight, 0 waiting; denied: 1 limit; fixed 1; aimd 20
	// 1
}

// The lower of two limits: one follows the overload of this machine, the other the
// response time of a dependency.
func ExampleMin() {
	bbr := strategy.BBR()
	gradient := strategy.Gradient2(adaptive.WithLimits(10, 500))
	l := algo.Must(adaptive.New(adaptive.Min(bbr, gradient)))
	fmt.Println(l.Limit())
	// Output: 20
}

// limit_conn of nginx: at most two connections per client address.
func ExamplePerKey() {
	conns := algo.Must(adaptive.PerKey(2))
	for _, client := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"} {
		lease, _ := conns.Acquire(ctx, client, 1)
		defer lease.Release(algo.Succeeded)
		fmt.Println(client, lease.Allowed)
	}
	// Output:
	// 192.0.2.1 true
	// 192.0.2.1 true
	// 192.0.2.1 false
	// 192.0.2.2 true
}

// The semaphores of Hystrix: at most ten calls per dependency, and four to the slow
// one, so that a hanging dependency does not block all goroutines.
func ExampleWithLimitOf() {
	calls := algo.Must(adaptive.PerKey(10, adaptive.WithLimitOf(func(_ context.Context, dependency string) int {
		if dependency == "reports" {
			return 4
		}
		return -1 // the common limit; 0 denies the key
	})))
	for _, dependency := range []string{"reports", "users"} {
		lease, _ := calls.Acquire(ctx, dependency, 1)
		defer lease.Release(algo.Succeeded)
		fmt.Println(dependency, lease.Limit, calls.InFlight(dependency))
	}
	// Output:
	// reports 4 1
	// users 10 1
}

// maxThreads and acceptCount of Tomcat: 200 in flight, 100 in the queue.
func ExampleFIFO() {
	l := algo.Must(adaptive.New(adaptive.Fixed(200),
		adaptive.WithQueue(adaptive.FIFO(100, 2*time.Second))))
	defer l.Close()
	lease, err := l.Acquire(ctx, "", 1) // waits at most two seconds
	defer lease.Release(algo.Succeeded)
	fmt.Println(lease.Allowed, err)
	// Output: true <nil>
}

func ExampleCoDel() {
	l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.CoDel(100, 0, 0))))
	defer l.Close()
	first, _ := l.Acquire(ctx, "", 1)
	go func() {
		time.Sleep(time.Millisecond)
		first.Release(algo.Succeeded)
	}()
	second, _ := l.Acquire(ctx, "", 1) // waits at most 100 ms; 5 ms in a standing queue
	defer second.Release(algo.Succeeded)
	fmt.Println(second.Allowed)
	// Output: true
}

func ExampleWithClass() {
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithPriorities()))
	payment := adaptive.WithClass(ctx, adaptive.Critical)
	lease, _ := l.Acquire(payment, "alice", 1)
	defer lease.Release(algo.Succeeded)
	fmt.Println(adaptive.ClassFrom(payment), lease.Allowed)
	// Output: critical true
}
