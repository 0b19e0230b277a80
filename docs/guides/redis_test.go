package guides_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// patient is for tests on busy machines.
var patient = distributed.WithTimeout(10 * time.Second)

func Example_redis() {
	client, stop := redisClient()
	defer stop()

	store, err := distributed.New(client, patient)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	users, err := store.TokenBucket("per-user", algo.PerSecond(10), algo.Burst(20))
	if err != nil {
		log.Fatal(err)
	}
	handler := authenticate(httpmw.Limit(users, keyfunc.Context(userOf))(ok))

	fmt.Println(get(handler, "/", "key-a").Header().Get("RateLimit"))
	// Output: "10-per-second-burst-20";r=19;t=1
}

// connect makes limits on Redis.
func connect(ctx context.Context) {
	store, err := distributed.Open(ctx, "redis://localhost:6379") // an error if it does not answer
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
}

var _ = connect

// start runs once in a service.
func start(ctx context.Context, address string) (*distributed.Store, error) {
	client := redis.NewClient(&redis.Options{Addr: address, MinIdleConns: 4})
	store, err := distributed.New(client,
		distributed.WithService("shop"),
		distributed.WithHook(func(e distributed.Event) { slog.Warn("limits", "event", e.Kind, "err", e.Err) }))
	if err != nil {
		return nil, err
	}
	if err := store.Ping(ctx); err != nil {
		slog.Warn("limits are local until Redis answers", "err", err)
	}
	return store, nil
}

var _ = start

// One limit of three regions.
func Example_regions() {
	far, stopFar := redisClient()
	defer stopFar()
	client, stop := redisClient()
	defer stop()
	shared := algo.Must(distributed.New(far, distributed.WithTimeout(10*time.Second)))
	defer shared.Close()
	near := algo.Must(distributed.New(client, patient))
	defer near.Close()

	global, err := shared.TokenBucket("per-user", algo.PerSecond(100), algo.Burst(300))
	if err != nil {
		log.Fatal(err)
	}
	users, err := near.Region(global, 3, 150) // regions, excess
	if err != nil {
		log.Fatal(err)
	}

	lease, err := users.Acquire(context.Background(), "alice", 20)
	fmt.Println(lease.Allowed, lease.Remaining, err)
	// Output: true 5 <nil>
}

// A limit that is kept in Redis, to be changed for all instances.
func Example_rules() {
	client, stop := redisClient()
	defer stop()
	ctx := context.Background()
	store := algo.Must(distributed.New(client, patient))
	defer store.Close()

	set, err := rules.New(ctx, store, "production", rules.WithLimit("search", algo.Must(algo.Parse("10/min"))))
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	limit := httpmw.Limit(set.Limiter("search"), keyfunc.ClientIP(), httpmw.WithName("search"))

	spec := algo.Must(algo.Parse("2/min"))
	err = set.Put(ctx, "search", rules.Rule{Limit: spec, Mode: rules.ModeShadow}) // from any instance

	fmt.Println(err, limit != nil)
	// Output: <nil> true
}
