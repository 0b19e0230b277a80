package distributed_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// away is a store whose Redis is not there.
func away(opts ...distributed.Option) (store *distributed.Store, stop func()) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	store, err := distributed.New(client, opts...)
	if err != nil {
		panic(err)
	}
	return store, func() {
		_ = store.Close()
		_ = client.Close()
	}
}

// Without Redis every request is denied, if that is the lesser evil.
func ExampleWithFallback() {
	store, stop := away(distributed.WithFallback(distributed.FallbackDeny))
	defer stop()
	payments := limiter(store.TokenBucket("payments", algo.PerHour(4)))
	lease, err := payments.Acquire(context.Background(), "alice", 1)
	fmt.Println(lease.Allowed, lease.Reason, lease.Source, err)
	// Output: false overload fallback <nil>
}

// A metric for local decisions.
func ExampleWithHook() {
	var local bool
	store, stop := away(
		distributed.WithHook(func(e distributed.Event) {
			if e.Kind == distributed.BreakerChanged && e.Phase == distributed.PhaseOpen {
				local = true
			}
		}))
	defer stop()
	users := limiter(store.TokenBucket("per-user", algo.PerHour(1000)))
	for range 100 {
		lease, _ := users.Acquire(context.Background(), "alice", 1)
		lease.Release(algo.Succeeded)
	}
	fmt.Println(local)
	// Output: true
}

// Failures go to the log of the service; here without the time and the error.
func ExampleWithLogger() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
				return a
			}
			return slog.Attr{}
		},
	}))
	store, stop := away(distributed.WithLogger(log), distributed.WithInstances(1))
	defer stop()
	show(limiter(store.TokenBucket("per-user", algo.PerHour(4))), "alice", 1)
	// Output:
	// level=WARN msg="distributed: a Redis command failed; its limits are decided locally"
	// true admitted 3
}

// Eight instances that start while Redis is away share the limit too.
func ExampleWithAssumedInstances() {
	store, stop := away(distributed.WithAssumedInstances(8))
	defer stop()
	show(limiter(store.TokenBucket("per-user", algo.PerHour(32))), "alice", 1)
	// Output: true admitted 3
}

// Instances of other services are not counted.
func ExampleWithService() {
	store, stop := exampleStore(distributed.WithService("checkout"))
	defer stop()
	show(limiter(store.TokenBucket("per-user", algo.PerHour(4))), "alice", 1)
	// Output: true admitted 3
}

// Two services on one Redis that do not share their limits.
func ExampleWithPrefix() {
	store, stop := exampleStore(distributed.WithPrefix("billing"))
	defer stop()
	show(limiter(store.TokenBucket("per-user", algo.PerHour(4))), "alice", 1)
	// Output: true admitted 3
}

// One hot key, and at most 100 units beyond its limit for the speed.
func ExampleWithBlocks() {
	store, stop := exampleStore(distributed.WithBlocks(100))
	defer stop()
	total := limiter(store.TokenBucket("total", algo.PerHour(100_000)))
	for range 1000 {
		lease, _ := total.Acquire(context.Background(), "", 1)
		lease.Release(algo.Succeeded)
	}
	lease, _ := total.Acquire(context.Background(), "", 1)
	fmt.Println(lease.Allowed)
	// Output: true
}

// A denial is remembered until it can change, so that a client that does not
// back off costs Redis nothing.
func ExampleWithDenyCache() {
	store, stop := exampleStore(distributed.WithDenyCache(100_000))
	defer stop()
	users := limiter(store.TokenBucket("per-user", algo.PerHour(1)))
	for range 3 {
		lease, _ := users.Acquire(context.Background(), "mallory", 1)
		fmt.Println(lease.Allowed, lease.Source)
	}
	// Output:
	// true remote
	// false remote
	// false deny-cache
}

// An operator raises a limit in this process.
func ExampleLimiter_SetRate() {
	store, stop := exampleStore()
	defer stop()
	users := limiter(store.TokenBucket("per-user", algo.PerHour(1)))
	show(users, "alice", 5)
	fmt.Println(users.SetRate(algo.PerHour(10)), users.SetBurst(20))
	show(users, "alice", 5)
	// Output:
	// false never 1
	// <nil> <nil>
	// true admitted 15
}

// A store from a URL, which has answered.
func ExampleOpen() {
	server, err := miniredis.Run() // a stand-in for Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	store, err := distributed.Open(context.Background(), "redis://"+server.Addr(), distributed.WithTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	show(limiter(store.TokenBucket("per-user", algo.PerSecond(10))), "alice", 1)
	// Output: true admitted 9
}

// Units of an instance that has crashed are free again after ten seconds.
func ExampleStore_InFlight_expiry() {
	store, stop := exampleStore()
	defer stop()
	show(limiter(store.InFlight("reports", 2, 10*time.Second)), "alice", 1)
	// Output: true admitted 1
}

// A snapshot of the store: its nodes and instances, and the fallback.
func ExampleStore_Stats() {
	store, stop := away(distributed.WithInstances(4))
	defer stop()
	s := store.Stats()
	fmt.Println(s.Nodes, s.Away, s.Far(), s.Instances, s.Percent)
	fmt.Println(s.WithoutRedis())
	// Output:
	// 1 0 false 4 100
	// each limit with a share of 1/4 in this instance
}
