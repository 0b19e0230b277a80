package guides_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/shares"
)

func teamOf(ctx context.Context) string {
	team, _ := ctx.Value(teamKey{}).(string)
	return team
}

type teamKey struct{}

// The limit of a tenant, with floors for its teams.
func Example_shares() {
	teams, err := shares.New(algo.PerMinute(100_000), map[string]int64{"search": 50_000, "batch": 20_000})
	if err != nil {
		return // the floors are more than the rate, or the burst is too small
	}
	limit := algo.ByKey(func(ctx context.Context, _ string) algo.Limiter { return teams.Child(teamOf(ctx)) })

	batch := context.WithValue(context.Background(), teamKey{}, "batch")
	all := algo.Must(limit.Acquire(batch, "tenant", 0)).Remaining
	lease := algo.Must(limit.Acquire(batch, "tenant", all)) // everything that is lent
	search := context.WithValue(context.Background(), teamKey{}, "search")
	floor := algo.Must(limit.Acquire(search, "tenant", 0)).Remaining

	fmt.Println(all, lease.Allowed, floor)
	// Output: 99167 true 833
}
