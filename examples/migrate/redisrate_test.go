package migrate_test

import (
	"testing"

	"github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
)

func TestRedisRate(t *testing.T) {
	client, store := server(t)
	limiter := redis_rate.NewLimiter(client)
	users, err := store.TokenBucket("users", algo.PerMinute(10))
	require.NoError(t, err)

	res, err := limiter.Allow(ctx, "alice", redis_rate.PerMinute(10))
	require.NoError(t, err)
	lease, err := users.Acquire(ctx, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, res.Allowed > 0, lease.Allowed)
	require.Equal(t, int64(res.Remaining), lease.Remaining)

	res, err = limiter.AllowN(ctx, "alice", redis_rate.PerMinute(10), 3)
	require.NoError(t, err)
	lease, err = users.Acquire(ctx, "alice", 3)
	require.NoError(t, err)
	require.Equal(t, int64(res.Remaining), lease.Remaining)

	burst, err := store.TokenBucket("bursts", algo.PerSecond(10), algo.Burst(50))
	require.NoError(t, err)
	res, err = limiter.Allow(ctx, "bob", redis_rate.Limit{Rate: 10, Burst: 50, Period: 1e9})
	require.NoError(t, err)
	require.Equal(t, int64(49), algo.Must(burst.Acquire(ctx, "bob", 1)).Remaining)
	require.InDelta(t, 49, res.Remaining, 1) // 4.9/0.1 is below 49 in floating point

	// AllowAtMost: what remains, up to n.
	res, err = limiter.AllowAtMost(ctx, "alice", redis_rate.PerMinute(10), 20)
	require.NoError(t, err)
	lease, units, err := meter.AtMost(ctx, users, "alice", 20)
	require.NoError(t, err)
	require.InDelta(t, res.Allowed, units, 1)
	require.True(t, lease.Allowed)

	require.NoError(t, limiter.Reset(ctx, "alice"))
	require.NoError(t, users.Reset(ctx, "alice"))
}
