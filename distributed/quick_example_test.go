package distributed_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// The shortest use. It needs no Redis to start, and goes on without one: here
// nobody listens.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer func() { _ = client.Close() }()
	store, err := distributed.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	users, err := store.TokenBucket("per-user", algo.PerSecond(10), algo.Burst(20))
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := users.Acquire(context.Background(), "ada", 1)
	fmt.Println(lease.Allowed, lease.Source, err)
	// Output: true fallback <nil>
}
