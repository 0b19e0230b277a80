package prepaid_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
)

func ExampleFirst() {
	plan := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	credits := prepaid.NewCredits()
	limit := prepaid.First(plan, credits)
	if err := credits.TopUp("alice", 20); err != nil {
		panic(err)
	}
	for _, n := range []int64{15, 16} {
		lease, err := limit.Acquire(context.Background(), "alice", n)
		fmt.Println(lease.Allowed, err, credits.Balance("alice"))
	}
	// Output:
	// true <nil> 15
	// false <nil> 15
}
