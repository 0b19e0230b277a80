package meter_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func TestAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := map[string]algo.Limiter{
			"in flight": algo.Must(adaptive.New(adaptive.Fixed(10))),
			"all": algo.All(algo.Must(algo.NewTokenBucket(algo.PerHour(10))),
				algo.Must(algo.NewTokenBucket(algo.PerHour(100)))),
		}
		for _, text := range cases.Limits("10/h", cases.Without{
			cases.Ahead: "the first cost is admitted, whatever it is", cases.Delays: "more is admitted, and waits",
		}) {
			limits[text] = algo.Must(algo.Must(algo.Parse(text)).New())
		}
		for name, l := range limits {
			for _, step := range []struct{ asked, want int64 }{{4, 4}, {1000, 6}, {1, 0}, {5, 0}} {
				lease, units, err := meter.AtMost(ctx, l, "k", step.asked)
				require.NoError(t, err, name)
				require.Equal(t, step.want, units, "%s: %d", name, step.asked)
				require.Equal(t, step.want > 0, lease.Allowed, name)
			}
			_, _, err := meter.AtMost(ctx, l, "k", 0)
			require.ErrorIs(t, err, algo.ErrCost, name)
		}
		lease, units, err := meter.AtMost(ctx, algo.DenyAll(), "k", 5)
		require.NoError(t, err)
		require.Zero(t, units)
		require.False(t, lease.Allowed)
	})
}

// Units that several take at the same time add up to the burst, no more, and no less.
func TestW1_AtMostSharesTheBurst(t *testing.T) {
	for range 200 {
		const burst = 1000
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(burst)))
		var sum atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for {
					lease, units, err := meter.AtMost(ctx, l, "k", int64(70+i*13))
					if err != nil || !lease.Allowed {
						return
					}
					sum.Add(units)
				}
			})
		}
		all.Wait()
		require.InDelta(t, burst, sum.Load(), 1, "an hour's rate gives a unit back in 3.6 s")
		require.LessOrEqual(t, sum.Load(), int64(burst+1))
	}
}

// A worker takes as many items from a queue as its share of the minute
// permits.
func ExampleAtMost() {
	l := algo.Must(algo.NewTokenBucket(algo.PerMinute(100)))
	for _, batch := range []int64{60, 60, 60} {
		_, units, err := meter.AtMost(context.Background(), l, "mails", batch)
		fmt.Println(units, err)
	}
	// Output:
	// 60 <nil>
	// 40 <nil>
	// 0 <nil>
}
