package adaptive_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// TestW4_PerKeyLooks: with a full table, and with spent slots, a look at PerKey answers as the
// charge does, and the order of the limits does not turn overload into quota.
func TestW4_PerKeyLooks(t *testing.T) {
	ctx := context.Background()
	for name, key := range map[string]string{"full table": "new", "spent": "old", "all callers": ""} {
		for _, n := range []int64{0, 1, 3} {
			synctest.Test(t, func(t *testing.T) {
				k := algo.Must(adaptive.PerKey(2, adaptive.WithMaxKeys(2)))
				for _, held := range []string{"", "", "old", "old"} {
					require.True(t, algo.Must(k.Acquire(ctx, held, 1)).Allowed)
				}
				spent := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
				require.True(t, spent.Allow(key, 1))
				look, err := algo.Peek(ctx, k, key, n)
				require.NoError(t, err)
				require.Equal(t, algo.Must(k.Acquire(ctx, key, n)).Decision, look, "%s, %d units", name, n)
				first := algo.Must(algo.All(k, spent).Acquire(ctx, key, n))
				require.Equal(t, first.Decision, algo.Must(algo.All(spent, k).Acquire(ctx, key, n)).Decision, "%s, %d units", name, n)
				require.Equal(t, 2, k.Len())
			})
		}
	}
	_, err := algo.Peek(ctx, algo.Must(adaptive.PerKey(1)), "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
}
