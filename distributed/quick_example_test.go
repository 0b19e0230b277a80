package distributed_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

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
