package distributed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// exampleStore is a store on a Redis of its own. The timeout is long, as the
// examples also run on busy machines.
func exampleStore(opts ...distributed.Option) (store *distributed.Store, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	store, err = distributed.New(client, append(opts, distributed.WithTimeout(10*time.Second))...)
	if err != nil {
		panic(err)
	}
	return store, func() {
		_ = store.Close()
		_ = client.Close()
		server.Close()
	}
}

// limiter is for examples that need no error handling.
func limiter(l *distributed.Limiter, err error) *distributed.Limiter {
	if err != nil {
		panic(err)
	}
	return l
}

// show prints a decision.
func show(l algo.Limiter, key string, n int64) {
	lease, err := l.Acquire(context.Background(), key, n)
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Allowed, lease.Reason, lease.Remaining)
}

// deadEnd is a Transport to a Redis that never answers.
type deadEnd struct{}

func (deadEnd) Do(_ context.Context, cmds []*distributed.Command) {
	for _, c := range cmds {
		words, keys := c.Words()
		c.Done(nil, fmt.Errorf("%w: %s for %q", distributed.ErrNotSent, words[0], words[3:3+keys]))
	}
}

func (deadEnd) Cluster() bool { return false }

func (deadEnd) Slots(context.Context, string) ([]distributed.SlotRange, error) { return nil, nil }

// A transport carries commands by any client of Redis; this one carries none.
func ExampleNewWithTransport() {
	store, err := distributed.NewWithTransport(deadEnd{}, distributed.WithInstances(1), distributed.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer store.Close()
	show(limiter(store.TokenBucket("per-user", algo.PerMinute(2))), "alice", 1)
	fmt.Println(store.Ping(context.Background()))
	// Output:
	// true admitted 1
	// distributed: Redis is unavailable: distributed: the command was not sent: evalsha for ["sluice:{::0}::probe"]
}

func ExampleNew() {
	// New does not dial: a service starts without its Redis.
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	store, err := distributed.New(client,
		distributed.WithTimeout(5*time.Millisecond),
		distributed.WithInstances(2))
	if err != nil {
		panic(err)
	}
	users := limiter(store.TokenBucket("per-user", algo.PerHour(4)))
	lease, err := users.Acquire(context.Background(), "alice", 1)
	fmt.Println(lease.Allowed, lease.Source, lease.Limit, err)
	_ = store.Close()
	_ = client.Close()
	// Output: true fallback 2 <nil>
}

func ExampleStore_TokenBucket() {
	store, stop := exampleStore()
	defer stop()
	users := limiter(store.TokenBucket("per-user", algo.PerMinute(2), algo.Burst(3)))
	show(users, "alice", 2)
	show(users, "alice", 2)
	show(users, "bob", 4)
	// Output:
	// true admitted 1
	// false quota 1
	// false never 3
}

func ExampleStore_LeakyBucket() {
	store, stop := exampleStore()
	defer stop()
	show(limiter(store.LeakyBucket("meter", algo.PerHour(5))), "alice", 2)
	// Output: true admitted 3
}

func ExampleStore_Pacer() {
	store, stop := exampleStore()
	defer stop()
	paced := limiter(store.Pacer("mails", algo.PerMinute(1), algo.MaxWait(time.Minute)))
	for range 3 {
		lease, _ := paced.Acquire(context.Background(), "", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 1m0s
	// false 0s
}

func ExampleStore_FixedWindow() {
	store, stop := exampleStore()
	defer stop()
	show(limiter(store.FixedWindow("daily", algo.PerDay(100))), "alice", 10)
	// Output: true admitted 90
}

func ExampleStore_SlidingWindow() {
	store, stop := exampleStore()
	defer stop()
	show(limiter(store.SlidingWindow("daily", algo.PerDay(100))), "alice", 10)
	// Output: true admitted 90
}

func ExampleStore_SlidingLog() {
	store, stop := exampleStore()
	defer stop()
	logins := limiter(store.SlidingLog("logins", algo.PerHour(2)))
	for range 3 {
		show(logins, "alice", 1)
	}
	// Output:
	// true admitted 1
	// true admitted 0
	// false quota 0
}

func ExampleStore_InFlight() {
	store, stop := exampleStore()
	defer stop()
	reports := limiter(store.InFlight("reports", 1, 30*time.Second))
	lease, _ := reports.Acquire(context.Background(), "alice", 1)
	show(reports, "alice", 1)
	lease.Release(algo.Succeeded)
	// Output: false quota 0
}

func ExampleLimiter_Ban() {
	store, stop := exampleStore()
	defer stop()
	users := limiter(store.TokenBucket("per-user", algo.PerHour(4)))
	if err := users.Ban(context.Background(), "mallory", time.Hour); err != nil {
		panic(err)
	}
	show(users, "mallory", 1)
	if err := users.Reset(context.Background(), "mallory"); err != nil {
		panic(err)
	}
	show(users, "mallory", 1)
	// Output:
	// false banned 0
	// true admitted 3
}

func ExampleLimiter_Refund() {
	store, stop := exampleStore()
	defer stop()
	users := limiter(store.TokenBucket("exports", algo.PerDay(3)))
	show(users, "alice", 3)
	fmt.Println(users.Refund(context.Background(), "alice", 2))
	show(users, "alice", 1)
	// Output:
	// true admitted 0
	// 2 <nil>
	// true admitted 1
}

// The shortest use. It needs no Redis to start, and goes on without one.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	store, err := distributed.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	users, err := store.TokenBucket("per-user", algo.PerSecond(10), algo.Burst(20))
	fmt.Println(users != nil, err)
	// Output: true <nil>
}

func ExampleStore_Limiter() {
	store, stop := exampleStore()
	defer stop()
	spec, err := algo.Parse("10/h burst 3")
	if err != nil {
		panic(err)
	}
	users := limiter(store.Limiter("per-user", spec))
	show(users, "alice", 2)

	// A changed limit, as a configuration file would have it.
	spec.Burst = 5
	if err := users.SetSpec(spec); err != nil {
		panic(err)
	}
	show(users, "alice", 1)

	// Not every algorithm exists on Redis.
	pace, err := algo.Parse("smooth-bursty 10/h")
	if err != nil {
		panic(err)
	}
	fmt.Println(distributed.Validate(pace) == nil)
	// Output:
	// true admitted 1
	// true admitted 2
	// false
}

// Ping at start opens the connections and reports a Redis that is away, or too far
// away for the timeout.
func ExampleStore_Ping() {
	store, stop := exampleStore()
	defer stop()
	fmt.Println(store.Ping(context.Background()))

	offline, stopOffline := away()
	defer stopOffline()
	fmt.Println(errors.Is(offline.Ping(context.Background()), distributed.ErrUnavailable))
	// Output:
	// <nil>
	// true
}

// A limit for each tenant, made and closed at run time.
func ExampleLimiter_Close() {
	store, stop := exampleStore()
	defer stop()
	tenant := limiter(store.TokenBucket("tenant-7", algo.PerHour(4)))
	show(tenant, "alice", 1)
	fmt.Println(tenant.Close())
	_, err := tenant.Acquire(context.Background(), "alice", 1)
	fmt.Println(err)
	// Output:
	// true admitted 3
	// <nil>
	// distributed: the store or the limit is closed
}
