package prepaid_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

func TestCredits(t *testing.T) {
	c := prepaid.NewCredits()
	require.False(t, allows(c, "a", 1))
	require.True(t, allows(c, "a", 0))
	require.NoError(t, c.TopUp("a", 10))
	lease := must(t, c, "a", 4)
	require.Equal(t, algo.Decision{Allowed: true, Limit: 10, Remaining: 6}, lease.Decision)
	d := must(t, c, "a", 7).Decision
	require.Equal(t, algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever, Limit: 6, Remaining: 6}, d)
	require.Zero(t, c.Balance("b"), "keys are apart")
	lease.Settle(1)
	require.Equal(t, int64(9), c.Balance("a"))
	lease.Settle(12)
	require.Equal(t, int64(-2), c.Balance("a"), "debt")
	require.False(t, allows(c, "a", 1))
	require.NoError(t, c.TopUp("a", 3))
	require.True(t, allows(c, "a", 1))
	lease.Release(algo.Canceled)
	require.Equal(t, int64(12), c.Balance("a"))
	require.False(t, algo.About(c).NeedsRelease)
	require.Equal(t, []bool{true, false}, []bool{allows(c, "a", 12), allows(c, "a", -1)})
}

// An empty balance is a limit too: it states no remaining units, and that is not the same as
// to state none.
func TestCreditsStateAnEmptyBalance(t *testing.T) {
	c, bucket := prepaid.NewCredits(), algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	require.Equal(t, algo.Decision{Allowed: true, Limit: 1}, must(t, c, "a", 0).Decision)
	require.Zero(t, must(t, algo.All(c, bucket), "a", 0).Remaining)

	more := prepaid.NewCredits()
	require.NoError(t, more.TopUp("a", 5))
	l := prepaid.First(c, more)
	for left := int64(4); left >= 0; left-- {
		d := must(t, l, "a", 1).Decision
		require.True(t, d.Allowed)
		require.Equal(t, left, d.Remaining)
		require.Positive(t, d.Limit)
	}
	require.False(t, must(t, l, "a", 1).Allowed)
}

func TestCreditsTopUpErrors(t *testing.T) {
	c := prepaid.NewCredits()
	require.ErrorIs(t, c.TopUp("a", -1), algo.ErrCost)
	require.ErrorIs(t, c.TopUp("a", math.MaxInt64), algo.ErrCost)
	require.NoError(t, c.TopUp("a", 1<<53-1))
	require.ErrorIs(t, c.TopUp("a", 1), algo.ErrCost)
}

// However many goroutines, no unit is spent twice and none is lost.
func TestW2_CreditsAreSpentOnce(t *testing.T) {
	c := prepaid.NewCredits()
	require.NoError(t, c.TopUp("a", 5000))
	var group sync.WaitGroup
	spent := make([]int64, 16)
	for i := range spent {
		group.Go(func() {
			for allows(c, "a", 1) {
				spent[i]++
				lease := must(t, c, "a", 1)
				lease.Release(algo.Canceled)
			}
		})
	}
	group.Wait()
	var sum int64
	for _, n := range spent {
		sum += n
	}
	require.Equal(t, int64(5000), sum+c.Balance("a"))
	require.LessOrEqual(t, c.Balance("a"), int64(15))
}

// A settlement beyond all sense, and its correction, leave the balance as it was.
func TestW2_CreditsSettledToTooMuch(t *testing.T) {
	for _, n := range []int64{1<<53 - 1, 1 << 53, 1 << 60, math.MaxInt64} {
		c := prepaid.NewCredits()
		require.NoError(t, c.TopUp("a", 10))
		first, second := must(t, c, "a", 3), must(t, c, "a", 4)
		first.Settle(n)
		second.Settle(n)
		require.False(t, allows(c, "a", 1))
		second.Settle(4)
		first.Release(algo.Canceled)
		require.Equal(t, int64(6), c.Balance("a"))
	}
}

// What credits would pay, were they not away or denying, is charged to the plan, until they can pay.
func TestFirstSettlesWhileCreditsAreAway(t *testing.T) {
	for name, err := range map[string]error{"away": fakes.ErrBroken, "denying": nil} {
		t.Run(name, func(t *testing.T) {
			plan, credits, away := bucket(algo.PerHour(10)), prepaid.NewCredits(), true
			require.NoError(t, credits.TopUp("k", 5))
			lease := must(t, prepaid.First(plan, fakes.Func(func(ctx context.Context, key string, n int64) (algo.Lease, error) {
				if away {
					return algo.Lease{}, err
				}
				return credits.Acquire(ctx, key, n)
			})), "k", 4)
			lease.Settle(15)
			require.InDelta(t, 90, peek(t, plan, "k").ResetAfter.Minutes(), .1)
			away = false
			lease.Settle(14)
			require.InDelta(t, 60, peek(t, plan, "k").ResetAfter.Minutes(), .1)
			require.EqualValues(t, 1, credits.Balance("k"))
		})
	}
}
