package algo_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// Ten units a minute for each key.
func Example_limits() {
	users := algo.Must(algo.NewTokenBucket(algo.PerMinute(10)))
	fmt.Println(users.Allow("alice", 10), users.Allow("alice", 1), users.Allow("bob", 1))
	// Output: true false true
}

// The cost is known when the work is done.
func Example_deciding() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	lease, err := tokens.Acquire(context.Background(), "alice", 700)
	if err != nil || !lease.Allowed {
		return
	}
	lease.Settle(300)
	lease.Release(algo.Succeeded)
	after, _ := tokens.Acquire(context.Background(), "alice", 701)
	fmt.Println(after.Allowed, after.Reason, after.Remaining)
	// Output: false quota 700
}

// A request takes units of a user and of the service, or of neither.
func Example_severalLimits() {
	user := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	service := algo.Must(algo.NewFixedWindow(algo.PerHour(8)))
	for _, key := range []string{"alice", "bob"} {
		lease, _ := algo.AcquireAll(context.Background(),
			algo.Request{Limiter: user, Key: key, N: 5},
			algo.Request{Limiter: service, N: 5})
		fmt.Println(key, lease.Allowed)
	}
	fmt.Println(user.Allow("bob", 5))
	// Output:
	// alice true
	// bob false
	// true
}

// A limit of a configuration file, changed in use.
func Example_limitsAsData() {
	spec := algo.Must(algo.Parse("sliding-window 100/min cells 10"))
	limit := algo.Must(spec.New())
	limit.Allow("alice", 60)
	err := algo.Must(algo.Parse("sliding-window 50/min cells 10")).Apply(limit)
	fmt.Println(limit.Allow("alice", 1), err)
	// Output: false <nil>
}

// A look charges nothing.
func Example_looking() {
	limit := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerHour(20), algo.Burst(5))))
	d, err := algo.Peek(context.Background(), limit, "alice", 6)
	fmt.Println(d.Allowed, d.Remaining, err, algo.About(limit))
	// Output: false 5 <nil> 20-per-hour-burst-5
}

// counted counts the denials of a limiter.
type counted struct {
	limiter algo.Limiter
	denied  atomic.Int64
}

func (c *counted) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := c.limiter.Acquire(ctx, key, n)
	if err == nil && !lease.Allowed && n > 0 {
		c.denied.Add(1)
	}
	return lease, err
}

// Unwrap lets others look through it: a look is not counted.
func (c *counted) Unwrap() []algo.Limiter { return []algo.Limiter{c.limiter} }

// A wrapper is described by the limiter beneath it.
func Example_writingALimiter() {
	limit := &counted{limiter: algo.Must(algo.NewTokenBucket(algo.PerHour(20)))}
	d, err := algo.Peek(context.Background(), limit, "alice", 21)
	fmt.Println(algo.About(limit), d.Allowed, err, limit.denied.Load())
	// Output: 20-per-hour false <nil> 0
}
