package shares_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/shares"
)

func ExampleNew() {
	floors := map[string]int64{"search": 500, "batch": 200}
	teams := algo.Must(shares.New(algo.PerHour(1000), floors, algo.Burst(100)))
	batch, _ := teams.Child("batch").Acquire(context.Background(), "tenant", 0)
	fmt.Println(teams.Child("batch").Allow("tenant", batch.Remaining), teams.Child("batch").Allow("tenant", 1))
	fmt.Println(teams.Child("search").Allow("tenant", 1)) // a floor is not lent
	// Output:
	// true false
	// true
}
