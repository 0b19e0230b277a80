package algo_test

import (
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// The tables of two limits, one of which is on trial.
func ExampleStatsOf() {
	minute := algo.Must(algo.NewTokenBucket(algo.PerMinute(10), algo.MaxKeys(64)))
	day := algo.Must(algo.NewTokenBucket(algo.PerDay(100), algo.MaxKeys(64)))
	minute.Allow("ann", 1)
	day.Allow("ann", 1)
	s := algo.StatsOf(algo.All(minute, algo.Shadow(day)))
	fmt.Println(s.Live, s.Room)
	// Output: 2 128
}
