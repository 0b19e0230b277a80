package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A reservation, its repetition and its settlement mean the same after the limit changed.
func TestReservationsOutlastAChangeOfTheLimit(t *testing.T) {
	s, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(s.TokenBucket("l", slow, algo.Burst(100)))
	require.True(t, reserve(t, l, "k", "1", 60).Allowed)
	require.NoError(t, l.SetBurst(50))
	require.True(t, reserve(t, l, "k", "1", 60).Allowed, "its charge is kept")
	require.Equal(t, algo.Never, reserve(t, l, "k", "2", 60).Reason)
	require.Equal(t, algo.Never, reserve(t, l, "k", "2", 1<<62).Reason)
	require.ErrorIs(t, l.SettleReserved(ctx, "k", "2", 0), distributed.ErrNoReservation)
	waits := must[*distributed.Limiter](t)(s.TokenBucket("waits", slow, algo.MaxWait(algo.Forever)))
	require.Equal(t, algo.Never, reserve(t, waits, "k", "1", 1<<62).Reason)
	require.ErrorIs(t, waits.SettleReserved(ctx, "k", "1", 0), distributed.ErrNoReservation)
	_, err := l.Reserve(ctx, "k", "1", 61, time.Minute)
	require.ErrorIs(t, err, distributed.ErrSettled)

	for range 2 {
		require.NoError(t, l.SettleReserved(ctx, "k", "1", 1<<62))
		require.NoError(t, l.SetBurst(100))
	}
	require.NoError(t, l.SetRate(algo.PerSecond(1000)))
	require.NoError(t, l.SettleReserved(ctx, "k", "1", 1<<62))
	require.ErrorIs(t, l.SettleReserved(ctx, "k", "1", 1<<40), distributed.ErrSettled)
}

// A settlement that fails is not taken for one that was made.
func TestReservationsBesideAForeignValue(t *testing.T) {
	s, server := onRedis(t)
	l := must[*distributed.Limiter](t)(s.TokenBucket("l", slow, algo.Burst(100)))
	bucket := distributed.RedisKey("sluice", "l", "k")
	require.True(t, reserve(t, l, "k", "1", 60).Allowed)
	own := server.Do("GET", bucket)
	server.Do("SET", bucket, "text")
	for _, actual := range []int64{0, 90, 0} {
		require.ErrorContains(t, l.SettleReserved(ctx, "k", "1", actual), "another algorithm")
	}
	server.Do("SET", bucket, own)
	require.NoError(t, l.SettleReserved(ctx, "k", "1", 10))
	require.Equal(t, int64(90), remote(t, l, "k", 0).Remaining)
}
