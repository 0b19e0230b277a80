package migrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/load"
	zredis "github.com/zeromicro/go-zero/core/stores/redis"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

func TestGoZero(t *testing.T) {
	client, store := server(t)
	conn, err := zredis.NewRedis(zredis.RedisConf{Host: client.Options().Addr, Type: "node"})
	require.NoError(t, err)

	tokens := limit.NewTokenLimiter(10, 20, conn, "search")
	search, err := store.TokenBucket("search", algo.PerSecond(10), algo.Burst(20))
	require.NoError(t, err)
	require.Equal(t, tokens.AllowCtx(ctx), algo.Must(search.Acquire(ctx, "", 1)).Allowed)

	period := limit.NewPeriodLimit(3600, 2, conn, "sms")
	sms, err := store.FixedWindow("sms", algo.PerHour(2))
	require.NoError(t, err)
	for range 3 {
		code, err := period.TakeCtx(ctx, "alice")
		require.NoError(t, err)
		lease, err := sms.Acquire(ctx, "alice", 1)
		require.NoError(t, err)
		require.Equal(t, code == limit.OverQuota, !lease.Allowed)
	}

	shedder := load.NewAdaptiveShedder()
	gate, err := adaptive.New(adaptive.Default())
	require.NoError(t, err)
	promise, err := shedder.Allow()
	require.NoError(t, err)
	promise.Pass()
	lease, err := gate.Acquire(ctx, "", 1)
	require.NoError(t, err)
	lease.Release(algo.Succeeded)

	promise, err = shedder.Allow()
	require.NoError(t, err)
	promise.Fail()
	lease, err = gate.Acquire(ctx, "", 1)
	require.NoError(t, err)
	lease.Release(algo.Failed)
}
