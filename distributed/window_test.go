package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A raised quota applies at once, in units; a changed period keeps the units of
// a window that has not ended.
func TestFixedWindowChangesInUse(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.FixedWindow("w", algo.PerDay(3)))
	require.True(t, remote(t, l, "k", 3).Allowed)
	require.False(t, remote(t, l, "k", 1).Allowed)
	require.NoError(t, l.SetRate(algo.PerDay(5)))
	require.Equal(t, int64(2), remote(t, l, "k", 0).Remaining)
	for _, period := range []time.Duration{time.Hour, 7 * 24 * time.Hour, 36 * time.Hour} {
		require.NoError(t, l.SetRate(algo.Per(5, period)))
		require.Equal(t, int64(2), remote(t, l, "k", 0).Remaining, "%v", period)
	}
	require.NoError(t, algo.Spec{Algorithm: "fixed-window", Rate: algo.PerDay(9)}.Apply(l))
	require.Equal(t, int64(6), remote(t, l, "k", 0).Remaining)
	require.ErrorContains(t, algo.Spec{Rate: algo.PerDay(9)}.Apply(l), "cannot be changed in use")
}
