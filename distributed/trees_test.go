package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/trees"
)

// TestTreesOnRedis: as TestTrees of package algo, on a real Redis: windows, units in flight and
// credits, whose counts do not change with the time that the test takes. Each step takes several
// round trips, so there are fewer trees in an everyday run.
func TestTreesOnRedis(t *testing.T) {
	store, _ := onRedis(t)
	made, tops := map[string]algo.Limiter{}, 0
	once := func(name string, make func(name string) (algo.Limiter, error)) algo.Limiter {
		if made[name] == nil { // trees have keys of their own
			made[name] = must[algo.Limiter](t)(make(name))
		}
		return made[name]
	}
	over := func(text string) func(int, int64) algo.Limiter {
		return func(nth int, quota int64) algo.Limiter {
			return once(fmt.Sprint(text, nth, quota), func(name string) (algo.Limiter, error) {
				s := algo.Must(algo.Parse(text))
				s.Rate = algo.PerDay(quota)
				return store.Limiter(name, s)
			})
		}
	}
	count := max(cases.Count(500, 40_000), 25)
	began := time.Now()
	operations := trees.Run(t, count, trees.Leaves{
		Kinds: []func(int, int64) algo.Limiter{over("fixed-window 1/day"), over("sliding-window 1/day")},
		Slots: func(nth int, quota int64) algo.Limiter {
			return once(fmt.Sprint("slots", nth, quota), func(name string) (algo.Limiter, error) { return store.InFlight(name, int(quota), time.Hour) })
		},
		Credits: func(nth int, balances map[string]int64) algo.Limiter {
			c := once(fmt.Sprint("credits", nth), func(name string) (algo.Limiter, error) { return store.Credits(name) })
			for key, n := range balances {
				tops++
				require.NoError(t, c.(*distributed.Credits).TopUp(ctx, key, fmt.Sprint(tops), n))
			}
			return c
		},
		First: prepaid.First,
	})
	t.Logf("%d trees, %d operations in %v", count, operations, time.Since(began).Round(time.Second))
}
