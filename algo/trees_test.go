package algo_test

import (
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/trees"
)

// TestTrees: limits of this process, within random compositions.
func TestTrees(t *testing.T) {
	over := func(text string) func(int, int64) algo.Limiter {
		return func(_ int, quota int64) algo.Limiter {
			s := algo.Must(algo.Parse(text))
			s.Rate = algo.PerDay(quota)
			return algo.Must(s.New())
		}
	}
	synctest.Test(t, func(t *testing.T) {
		made := max(cases.Count(500, 40_000), 500)
		operations := trees.Run(t, made, trees.Leaves{
			Kinds: []func(int, int64) algo.Limiter{over("1/day"), over("fixed-window 1/day"), over("sliding-window 1/day"), over("leaky-bucket 1/day")},
			Slots: func(_ int, quota int64) algo.Limiter { return algo.Must(adaptive.PerKey(int(quota))) },
			Credits: func(_ int, balances map[string]int64) algo.Limiter {
				c := prepaid.NewCredits()
				for key, n := range balances {
					_ = c.TopUp(key, n)
				}
				return c
			},
			First: prepaid.First,
		})
		t.Logf("%d trees, %d operations", made, operations)
	})
}
