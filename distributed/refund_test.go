package distributed_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// The reply to a caller that has gone on is still read, and its charge is
// refunded.
func TestLateReplyIsRefunded(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		l := must[*distributed.Limiter](t)(newStore(t, c, distributed.WithInstances(1)).TokenBucket("hourly", algo.PerHour(10)))
		remote(t, l, "alice", 0)
		wire.Set(redistest.Fault{Delay: patient + time.Second})
		require.Equal(t, algo.SourceFallback, acquire(t, l, "alice", 5).Source)
		wire.Set(redistest.Fault{})
		require.Eventually(t, func() bool { return remoteNow(t, l, "alice") == 10 }, time.Minute, 10*time.Millisecond)
	})
}

func TestReleaseAndSettle(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	left := func() int64 { return remote(t, l, "alice", 0).Remaining }
	lease := remote(t, l, "alice", 4)
	lease.Release(algo.Canceled)
	lease.Release(algo.Canceled)
	require.Equal(t, int64(10), left())

	lease = remote(t, l, "alice", 4)
	lease.Settle(1)
	require.Equal(t, int64(9), left())
	lease.Settle(6)
	require.Equal(t, int64(4), left())
	lease.Release(algo.Succeeded)
	require.Equal(t, int64(4), left())
	lease = remote(t, l, "alice", 1)
	lease.Settle(1 << 60)
	lease.Release(algo.Failed)
	require.Zero(t, left())
	require.LessOrEqual(t, remote(t, l, "alice", 0).ResetAfter, 2*time.Hour, "debt is bounded: one burst beyond the bucket")
}

func TestWindowsGiveBackAndSettle(t *testing.T) {
	store, server := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(make(name, algo.PerDay(10)))
			left := func() int64 { return remote(t, l, "k", 0).Remaining }
			a, b := remote(t, l, "k", 4), remote(t, l, "k", 3)
			require.Equal(t, int64(3), left())
			a.Release(algo.Canceled)
			require.Equal(t, int64(7), left())
			b.Settle(1)
			require.Equal(t, int64(9), left())
			b.Settle(5)
			require.Equal(t, int64(5), left())
			b.Release(algo.Canceled)
			require.GreaterOrEqual(t, left(), int64(9), "except the units that have drained since the charge")
			require.NoError(t, l.Ban(ctx, "k", 48*time.Hour))
			blocked := remote(t, l, "k", 1)
			require.False(t, blocked.Allowed)
			require.Equal(t, algo.Banned, blocked.Reason)
			require.InDelta(t, 48*time.Hour, blocked.RetryAfter, float64(5*time.Second))
			require.Zero(t, left())
			require.NoError(t, l.Reset(ctx, "k"))
			require.Equal(t, int64(10), left())
			require.NoError(t, l.SetRate(algo.PerDay(3)))
			require.Equal(t, int64(3), remote(t, l, "k", 0).Limit)
			require.Equal(t, algo.Never, remote(t, l, "k", 4).Reason)
		})
	}
	requireTTL(t, server)
}

// An admission with a Delay is given back whole until it starts.
func TestMaxWaitDelaysAndIsGivenBack(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("guava", algo.PerMinute(1), algo.Burst(2), algo.MaxWait(algo.Forever)))
	require.True(t, remote(t, l, "k", 2).Allowed)
	lease := remote(t, l, "k", 3)
	require.True(t, lease.Allowed)
	require.InDelta(t, 3*time.Minute, lease.Delay, float64(5*time.Second))
	lease.Release(algo.Canceled)
	require.InDelta(t, time.Minute, remote(t, l, "k", 1).Delay, float64(5*time.Second))
	timed := must[*distributed.Limiter](t)(store.TokenBucket("timed", algo.PerMinute(1), algo.MaxWait(90*time.Second)))
	require.Zero(t, remote(t, timed, "k", 1).Delay)
	require.Positive(t, remote(t, timed, "k", 1).Delay)
	require.False(t, remote(t, timed, "k", 1).Allowed, "two minutes are too long")
}

// A stream that lasts longer than its own cost takes to drain, behind other
// debt, and settles below its estimate: the difference comes back as far as the
// bucket still has debt for it.
func TestRefundOfALongStream(t *testing.T) {
	t.Parallel()
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("tokens", algo.PerMinute(600), algo.Burst(600)))
	first, stream := remote(t, l, "k", 590), remote(t, l, "k", 10)
	time.Sleep(1100 * time.Millisecond) // 11 units come in; the stream's own 10 would have drained
	before := remote(t, l, "k", 0).Remaining
	stream.Settle(2)
	require.GreaterOrEqual(t, remote(t, l, "k", 0).Remaining, before+8)
	first.Release(algo.Canceled)
	require.GreaterOrEqual(t, remote(t, l, "k", 0).Remaining, int64(598), "all but the units that the stream kept")
}

// A cost that is not known before the work is charged after it.
func TestSettleOfNoCost(t *testing.T) {
	store, _ := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(make("late "+name, algo.PerDay(10)))
			unused := remote(t, l, "alice", 0)
			unused.Release(algo.Canceled)
			lease := remote(t, l, "alice", 0)
			for _, n := range []int64{2, 1, 2, 1} { // up, down and up
				lease.Settle(n)
			}
			require.LessOrEqual(t, remote(t, l, "alice", 0).Remaining, unused.Limit-1)
			lease.Release(algo.Canceled)
			left := remote(t, l, "alice", 0)
			require.GreaterOrEqual(t, left.Remaining, left.Limit-1, "given back, but for what has drained")
		})
	}
	slots := must[*distributed.Limiter](t)(store.InFlight("late", 5, 30*time.Second))
	lease := remote(t, slots, "alice", 0)
	lease.Settle(3)
	require.Equal(t, int64(2), remote(t, slots, "alice", 0).Remaining)
	lease.Release(algo.Succeeded)
	require.Equal(t, int64(5), remote(t, slots, "alice", 0).Remaining)
}

// Each limit of a decision in one step is settled by itself.
func TestPartsOnRedis(t *testing.T) {
	store, _ := onRedis(t)
	requests := must[*distributed.Limiter](t)(store.TokenBucket("requests", algo.PerHour(10)))
	tokens := must[*distributed.Limiter](t)(store.TokenBucket("tokens", algo.PerHour(3000)))
	slots := must[*distributed.Limiter](t)(store.InFlight("slots", 5, 30*time.Second))
	for _, reserve := range []int64{0, 500} {
		lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: requests, Key: "u", N: 1},
			algo.Request{Limiter: tokens, Key: "u", N: reserve}, algo.Request{Limiter: slots, Key: "u", N: 1})
		require.NoError(t, err)
		lease.Settle(2000) // in different units: changes nothing
		lease.Part(1).Settle(1000)
		require.Equal(t, int64(4), remote(t, slots, "u", 0).Remaining)
		lease.Release(algo.Succeeded)
	}
	require.Equal(t, int64(8), remote(t, requests, "u", 0).Remaining)
	require.Equal(t, int64(1000), remote(t, tokens, "u", 0).Remaining)
	require.Equal(t, int64(5), remote(t, slots, "u", 0).Remaining)
}

// A limit on failures only, on Redis.
func TestFailuresOnly(t *testing.T) {
	store, _ := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(make("failures "+name, algo.PerDay(3)))
			failures := guard.FailuresOnly(l)
			try := func(o algo.Outcome) bool {
				lease, err := failures.Acquire(t.Context(), "alice", 1)
				require.NoError(t, err)
				lease.Release(o)
				return lease.Allowed
			}
			for range 10 {
				require.True(t, try(algo.Succeeded))
			}
			for range 3 {
				require.True(t, try(algo.Failed))
			}
			require.False(t, try(algo.Failed))
			require.Zero(t, remote(t, l, "alice", 0).Remaining)
		})
	}
}
