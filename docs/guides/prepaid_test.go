package guides_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
)

// A plan of a month, and credits for the units beyond it.
func Example_first() {
	plan := algo.Must(algo.NewFixedWindow(algo.Per(1000, algo.Month), algo.Zone("UTC")))
	credits := prepaid.NewCredits()
	limit := prepaid.First(plan, credits)

	if err := credits.TopUp("alice", 500); err != nil {
		return // the balance would be too large
	}

	lease, err := limit.Acquire(context.Background(), "alice", 1200) // 1000 of the plan, 200 of credits
	if err != nil || !lease.Allowed {
		return
	}
	defer lease.Release(algo.Succeeded)
	lease.Settle(1100) // 100 of credits come back

	fmt.Println(credits.Balance("alice"))
	// Output: 400
}
