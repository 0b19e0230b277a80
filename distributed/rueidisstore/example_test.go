package rueidisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/rueidisstore"
)

func ExampleNew() {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}, DisableCache: true})
	if err != nil {
		log.Panic(err) // unlike go-redis, rueidis dials here
	}
	defer client.Close()
	store, err := rueidisstore.New(client)
	if err != nil {
		log.Panic(err)
	}
	defer store.Close()
	perUser, err := store.TokenBucket("user", algo.PerMinute(100))
	if err != nil {
		log.Panic(err)
	}
	lease, err := perUser.Acquire(context.Background(), "alice", 1)
	fmt.Println(lease.Allowed, err)
}
