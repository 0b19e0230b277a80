package algo_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

func ExampleFirst() {
	plan := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	credits := algo.Must(algo.NewCredits())
	limit := algo.First(plan, credits)
	if err := credits.TopUp("alice", 20); err != nil {
		panic(err)
	}
	fmt.Println(limit.Allow("alice", 15), credits.Balance("alice"))
	fmt.Println(limit.Allow("alice", 16), credits.Balance("alice"))
	// Output:
	// true 15
	// false 15
}

func ExampleNewShares() {
	floors := map[string]int64{"search": 500, "batch": 200}
	shares := algo.Must(algo.NewShares(algo.PerHour(1000), floors, algo.Burst(100)))
	batch, _ := shares.Child("batch").Acquire(context.Background(), "tenant", 0)
	fmt.Println(shares.Child("batch").Allow("tenant", batch.Remaining), shares.Child("batch").Allow("tenant", 1))
	fmt.Println(shares.Child("search").Allow("tenant", 1)) // a floor is not lent
	// Output:
	// true false
	// true
}
