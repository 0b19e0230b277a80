package distributed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
)

func ExampleCredits() {
	store, stop := exampleStore()
	defer stop()
	ctx := context.Background()
	plan := limiter(store.TokenBucket("plan", algo.PerHour(10)))
	credits := algo.Must(store.Credits("credits"))
	limit := prepaid.First(plan, credits)
	if err := credits.TopUp(ctx, "alice", "payment 17", 20); err != nil {
		panic(err) // repeat it with the same id
	}
	show(limit, "alice", 15)
	show(limit, "alice", 16)
	fmt.Println(credits.Balance(ctx, "alice"))
	// Output:
	// true admitted 15
	// false quota 15
	// 15 <nil>
}

func ExampleNewBan() {
	store, stop := exampleStore()
	defer stop()
	ctx := context.Background()
	logins := limiter(store.TokenBucket("logins", algo.PerMinute(1)))
	guarded := algo.Must(distributed.NewBan(logins, algo.PerMinute(3), 10*time.Minute, 24*time.Hour))
	for range 4 {
		lease, err := guarded.Acquire(ctx, "mallory", 1)
		fmt.Println(lease.Allowed, lease.Reason, err)
	}
	left, err := guarded.Banned(ctx, "mallory")
	fmt.Println(left.Round(time.Minute), err)
	fmt.Println(guarded.Reset(ctx, "mallory"))
	// Output:
	// true admitted <nil>
	// false quota <nil>
	// false quota <nil>
	// false banned <nil>
	// 10m0s <nil>
	// <nil>
}

func ExampleStore_Region() {
	shared, stopShared := exampleStore()
	defer stopShared()
	near, stop := exampleStore()
	defer stop()
	global := limiter(shared.TokenBucket("per-user", algo.PerHour(1000)))
	users := limiter(near.Region(global, 10, 200))
	show(users, "alice", 4) // in advance; it is leased now
	for {
		lease, _ := global.Acquire(context.Background(), "alice", 0)
		if lease.Remaining < 1000 {
			fmt.Println(lease.Remaining, "left for all regions")
			return
		}
		time.Sleep(time.Millisecond)
	}
	// Output:
	// true admitted 6
	// 996 left for all regions
}

func ExampleStore_Shares() {
	store, stop := exampleStore()
	defer stop()
	floors := map[string]int64{"search": 500, "batch": 200}
	shares := algo.Must(store.Shares("tenants", algo.PerHour(1000), floors, algo.Burst(100)))
	show(shares.Child("batch"), "tenant", 60)
	show(shares.Child("search"), "tenant", 20) // of its floor
	// Output:
	// true admitted 39
	// true admitted 20
}

func ExampleLimiter_Reserve() {
	store, stop := exampleStore()
	defer stop()
	ctx := context.Background()
	tokens := limiter(store.TokenBucket("tokens", algo.PerHour(1000)))
	d, err := tokens.Reserve(ctx, "alice", "job 17", 400, time.Hour)
	fmt.Println(d.Allowed, err)
	// Another process, which knows the key and the id:
	fmt.Println(tokens.SettleReserved(ctx, "alice", "job 17", 150))
	show(tokens, "alice", 0)
	// Output:
	// true <nil>
	// <nil>
	// true admitted 850
}
