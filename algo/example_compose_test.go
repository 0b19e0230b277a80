package algo_test

import (
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/algo"
)

func ExampleTokenBucket_Snapshot() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerDay(10)))
	limiter.Allow("alice", 7)
	data := limiter.Snapshot(slices.Values([]string{"alice", "bob"}))

	// In the next process.
	limiter = algo.Must(algo.NewTokenBucket(algo.PerDay(10)))
	if err := limiter.Restore(data); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Allow("alice", 4), limiter.Allow("alice", 3))
	fmt.Println(limiter.Restore([]byte("something else")))
	// Output:
	// false true
	// algo: not a usable snapshot: it does not begin as one
}
