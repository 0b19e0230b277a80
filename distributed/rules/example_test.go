package rules_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
)

// exampleStore is a store on a Redis of its own.
func exampleStore() (store *distributed.Store, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	store, err = distributed.New(client, distributed.WithTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	return store, func() {
		_ = store.Close()
		_ = client.Close()
		server.Close()
	}
}

// show prints a decision.
func show(l algo.Limiter, key string, n int64) {
	lease, err := l.Acquire(context.Background(), key, n)
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Allowed, lease.Reason, lease.Remaining)
}

func ExampleNew() {
	store, stop := exampleStore()
	defer stop()
	ctx := context.Background()
	first := algo.Must(algo.Parse("5/h")) // until the rule is known
	set, err := rules.New(ctx, store, "production", rules.WithLimit("search", first))
	if err != nil {
		panic(err)
	}
	defer func() { _ = set.Close() }()
	search := set.Limiter("search") // for a middleware
	fmt.Println(set.Loaded(), algo.About(search).Quota)
	if err := set.Put(ctx, "search", rules.Rule{Limit: algo.Must(algo.Parse("2/h"))}); err != nil {
		panic(err)
	}
	show(search, "alice", 2)
	show(search, "alice", 1)
	if err := set.Delete(ctx, "search"); err != nil {
		panic(err)
	}
	show(search, "bob", 3)
	// Output:
	// true 5
	// true admitted 0
	// false quota 0
	// true admitted 2
}

// Rules for one application. A limit without a rule denies.
func ExampleRules_Get() {
	store, stop := exampleStore()
	defer stop()
	ctx := context.Background()
	set, err := rules.New(ctx, store, "production",
		rules.WithApp("web"),
		rules.WithUnknownDenied())
	if err != nil {
		panic(err)
	}
	defer func() { _ = set.Close() }()
	limit, _ := algo.Parse("2/h")
	if err := set.Put(ctx, "search", rules.Rule{Limit: limit, Apps: []string{"web"}}); err != nil {
		panic(err)
	}
	rule, err := set.Get(ctx, "search")
	fmt.Println(rule.Limit, rule.Apps, err)
	_, err = set.Get(ctx, "upload")
	fmt.Println(errors.Is(err, rules.ErrNoRule))

	lease, _ := set.Limiter("upload").Acquire(ctx, "alice", 1)
	fmt.Println(lease.Allowed, lease.Reason)
	// Output:
	// 2/h [web] <nil>
	// true
	// false overload
}
