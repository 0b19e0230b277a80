package algo_test

import (
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
