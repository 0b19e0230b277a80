package guides_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/keyfunc"
)

// The lines that differ on Redis.
func Example_whichWayOnRedis() {
	client, stop := redisClient()
	defer stop()
	ctx := context.Background()
	store := algo.Must(distributed.New(client, patient, distributed.WithBlocks(256_000)))
	defer store.Close()
	set := algo.Must(rules.New(ctx, store, "production"))
	defer set.Close()
	admits := func(l algo.Limiter, err error) {
		lease := algo.Must(algo.Must(l, err).Acquire(ctx, keyfunc.Identity("alice"), 1))
		fmt.Print(lease.Allowed, " ")
	}
	func() {
		addresses, err := store.TokenBucket("address", algo.PerSecond(10), algo.Burst(20))
		admits(addresses, err)
	}()
	func() {
		users, err := store.TokenBucket("user", algo.PerMinute(60))
		admits(users, err)
		perUser := set.Over("more", users)
		err = set.Put(ctx, "more", rules.Rule{Overrides: map[string]algo.Spec{keyfunc.Identity("alice"): algo.Must(algo.Parse("1000/min"))}})
		admits(perUser, err)
	}()
	func() {
		tokens, err := store.TokenBucket("tokens", algo.PerMinute(10_000))
		admits(tokens, err)
	}()
	func() {
		budget, err := store.FixedWindow("budget", algo.PerDay(500_000))
		admits(budget, err)
	}()
	func() {
		connections, err := store.InFlight("connections", 5, 30*time.Second)
		admits(connections, err)
	}()
	func() {
		perSecond, err := store.TokenBucket("bytes", algo.PerSecond(1_000_000), algo.Burst(256_000))
		admits(perSecond, err)
	}()
	func() {
		perSecond, err := store.Pacer("partner", algo.PerSecond(46))
		admits(perSecond, err)
	}()
	func() {
		pool, err := store.InFlight("pool", 50, 30*time.Second)
		admits(pool, err)
	}()
	fmt.Println()
	// Output: true true true true true true true true true
}
