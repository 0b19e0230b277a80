package distributed_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// spendable spends the units of key that fit, and counts them.
func spendable(t *testing.T, l algo.Limiter, key string) (n int64) {
	for acquire(t, l, key, 1).Allowed {
		n++
	}
	return n
}

// refund gives back n units, and returns how many came back.
func refund(t *testing.T, l *distributed.Limiter, key string, n int64) int64 {
	return must[int64](t)(l.Refund(ctx, key, n))
}

// refuses is the error of a refund.
func refuses(l *distributed.Limiter, n int64) error {
	_, err := l.Refund(ctx, "k", n)
	return err
}

// Units are given back without their lease, in all instances: as far as they were spent, and
// once.
func TestRefundWithoutALease(t *testing.T) {
	store, server := onRedis(t, distributed.WithDenyCache(1000))
	other := newStore(t, server.Client())
	for name, spec := range map[string]string{
		"token":    "5/d",
		"shaping":  "5/d wait 1h",
		"pacer":    "pacer 5/d slack 4",
		"leaky":    "leaky-bucket 5/d",
		"fixed":    "fixed-window 5/d",
		"spread":   "fixed-window 5/d spread",
		"calendar": "fixed-window 5/d zone UTC",
	} {
		t.Run(name, func(t *testing.T) {
			s := algo.Must(algo.Parse(spec))
			a, b := must[*distributed.Limiter](t)(store.Limiter(name, s)), must[*distributed.Limiter](t)(other.Limiter(name, s))
			for _, key := range []string{"", "k"} {
				require.Zero(t, refund(t, a, key, 3), "nothing was spent")
				full := spendable(t, a, key)
				require.Positive(t, full)
				require.Zero(t, refund(t, a, key, 0))
				require.Zero(t, spendable(t, a, key))
				require.EqualValues(t, 2, refund(t, b, key, 2))
				require.EqualValues(t, 2, spendable(t, b, key))
				require.EqualValues(t, 1, refund(t, a, key, 1))
				require.True(t, remote(t, a, key, 1).Allowed, "the proof of the denial is dropped")
				require.Positive(t, refund(t, a, key, math.MaxInt64))
				require.Equal(t, full, spendable(t, a, key))
				require.ErrorIs(t, refuses(a, -1), algo.ErrCost)
				require.Zero(t, spendable(t, a, key))
			}
			requireTTL(t, server)
		})
	}
}

// A lease that is canceled after its units were given back does not take those of others.
func TestCancelAfterRefund(t *testing.T) {
	store, _ := onRedis(t)
	for name, spec := range map[string]string{"token": "5/d", "fixed": "fixed-window 5/d"} {
		l := must[*distributed.Limiter](t)(store.Limiter(name, algo.Must(algo.Parse(spec))))
		lease := remote(t, l, "k", 5)
		require.EqualValues(t, 5, refund(t, l, "k", 5))
		kept := spendable(t, l, "k")
		lease.Release(algo.Canceled)
		kept += spendable(t, l, "k")
		require.LessOrEqual(t, kept, int64(10), "5 were canceled, 5 given back")
	}
}

// Where the burst was lowered since, a key owes one burst at most, and all of it is given back.
func TestRefundOfMoreThanTwoBursts(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(5), algo.Burst(100)))
	require.EqualValues(t, 100, spendable(t, l, "k"))
	require.NoError(t, l.SetBurst(5))
	require.Zero(t, spendable(t, l, "k"))
	require.EqualValues(t, 3, refund(t, l, "k", 3))
	require.EqualValues(t, 3, spendable(t, l, "k"))
	require.EqualValues(t, 5, refund(t, l, "k", math.MaxInt64))
	require.EqualValues(t, 5, spendable(t, l, "k"))
}

// Units of a block count as spent: those that were not spent yet stay with their process.
func TestRefundBesideBlocks(t *testing.T) {
	store, _ := onRedis(t, distributed.WithBlocks(10))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(100)))
	var n int64
	for acquire(t, l, "k", 1).Allowed {
		n++
	}
	require.EqualValues(t, 100, n)
	require.EqualValues(t, 30, refund(t, l, "k", 30))
	for acquire(t, l, "k", 1).Allowed {
		n++
	}
	require.EqualValues(t, 130, n)
}

func TestRefundThatIsNotPossible(t *testing.T) {
	t.Parallel()
	store, server := onRedis(t)
	for _, spec := range []string{"sliding-window 5/d", "sliding-log 5/d"} {
		l := must[*distributed.Limiter](t)(store.Limiter(spec, algo.Must(algo.Parse(spec))))
		require.ErrorIs(t, refuses(l, 1), errors.ErrUnsupported)
		require.ErrorIs(t, refuses(l, -1), errors.ErrUnsupported)
	}
	inFlight := must[*distributed.Limiter](t)(store.InFlight("in-flight", 5, 30*time.Second))
	require.ErrorIs(t, refuses(inFlight, 1), errors.ErrUnsupported)

	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(5)))
	require.NoError(t, l.Ban(ctx, "k", time.Hour))
	require.Zero(t, refund(t, l, "k", 5), "a banned key has no debt")
	require.False(t, remote(t, l, "k", 1).Allowed)
	require.NoError(t, server.Client().Set(ctx, onlyKeyOf(t, server.Client(), "a"), "junk", 0).Err())
	require.ErrorContains(t, refuses(l, 1), "value of another algorithm")
	require.NoError(t, l.Close())
	require.ErrorIs(t, refuses(l, 1), distributed.ErrClosed)
	server.Kill()
	away := must[*distributed.Limiter](t)(store.TokenBucket("b", algo.PerDay(5)))
	require.ErrorIs(t, refuses(away, 1), distributed.ErrUnavailable)
	require.ErrorIs(t, refuses(away, -1), algo.ErrCost, "without a call")
}

// onlyKeyOf is the only key of a limit.
func onlyKeyOf(t *testing.T, c *redis.Client, name string) string {
	keys, err := c.Keys(ctx, "*}:"+name).Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return keys[0]
}
