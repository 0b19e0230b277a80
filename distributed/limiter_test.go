package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func TestNegativeCostIsAnError(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1)))
	_, err := l.Acquire(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining)
}

func TestResetAndBlock(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(3)))
	remote(t, l, "alice", 3)
	require.NoError(t, l.Reset(ctx, "alice"))
	require.Equal(t, int64(3), acquire(t, l, "alice", 0).Remaining)

	require.NoError(t, l.Ban(ctx, "alice", time.Hour))
	blocked := acquire(t, l, "alice", 1)
	require.False(t, blocked.Allowed)
	require.Equal(t, algo.Banned, blocked.Reason)
	require.Greater(t, blocked.RetryAfter, 59*time.Minute)
	require.LessOrEqual(t, blocked.RetryAfter, time.Hour+time.Millisecond)
	peek := acquire(t, l, "alice", 0)
	require.Zero(t, peek.Remaining)
	peek.Settle(0)
	peek.Settle(2)
	require.True(t, remote(t, l, "bob", 1).Allowed)
	requireTTL(t, server)

	require.NoError(t, l.Ban(ctx, "alice", time.Minute), "a shorter block does not shorten")
	require.Greater(t, acquire(t, l, "alice", 1).RetryAfter, 59*time.Minute)
	require.NoError(t, l.Reset(ctx, "alice"))
	require.True(t, acquire(t, l, "alice", 3).Allowed)
	for _, bad := range []time.Duration{0, -1, 1 << 62} {
		require.ErrorContains(t, l.Ban(ctx, "alice", bad), "ban is")
	}
}

// U2: after RetryAfter the same request is admitted; Remaining units are
// admitted at once, and the one after them at NextAfter.
func TestU2_RetryAfterAndRemaining(t *testing.T) {
	store, _ := onRedis(t)
	for name, make := range makers(store) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := must[*distributed.Limiter](t)(make(name, algo.Per(8, 80*time.Millisecond)))
			rnd := rand.New(rand.NewPCG(5, 6))
			for range 30 {
				n := 1 + rnd.Int64N(8)
				lease := remote(t, l, "k", n)
				if lease.Allowed {
					require.Equal(t, algo.Admitted, lease.Reason)
					require.Zero(t, lease.RetryAfter)
					continue
				}
				require.Equal(t, algo.Quota, lease.Reason)
				require.Positive(t, lease.RetryAfter)
				require.LessOrEqual(t, lease.RetryAfter, 160*time.Millisecond)
				require.Less(t, lease.Remaining, n)
				require.LessOrEqual(t, lease.NextAfter, lease.ResetAfter)
				time.Sleep(lease.RetryAfter)
				require.True(t, remote(t, l, "k", n).Allowed, "%+v", lease.Decision)
			}
			time.Sleep(161 * time.Millisecond)
			fresh := remote(t, l, "k", 0)
			require.Equal(t, int64(8), fresh.Remaining)
			require.Zero(t, fresh.NextAfter)
			require.Zero(t, fresh.ResetAfter)
		})
	}
}

// TestManyLimits: limits for each tenant, by the hundred thousand, take 2 kB each, and
// nothing that grows when they are closed and made again.
func TestManyLimits(t *testing.T) {
	store := newStore(t, nowhere(t))
	const n = 20_000
	all := make([]*distributed.Limiter, n)
	make := func() {
		for i := range all {
			var err error
			if all[i], err = store.TokenBucket(fmt.Sprint("tenant", i), algo.PerMinute(60)); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeAll := func() {
		for i := range all {
			all[i].Close()
			all[i] = nil
		}
	}
	before := heapInUse()
	make()
	open := (heapInUse() - before) / n
	closeAll()
	closed := heapInUse()
	for range cases.Count(3, 3) {
		make()
		closeAll()
	}
	t.Logf("%d limits: %d B each", n, open)
	require.Less(t, open, int64(2000))
	require.Less(t, heapInUse()-closed, int64(n*8), "after all have been made and closed again")
}

// TestM1_LimitWithOneKey: a limit with one used key takes at most 4 kB in this process.
func TestM1_LimitWithOneKey(t *testing.T) {
	store, _ := onRedis(t)
	for _, spec := range []string{"60/min burst 60", "fixed-window 60/min", "sliding-window 60/min", "sliding-log 60/min"} {
		const n = 500
		all := make([]*distributed.Limiter, n)
		before := heapInUse()
		for i := range all {
			all[i] = algo.Must(store.Limiter(fmt.Sprint(spec, i), algo.Must(algo.Parse(spec))))
			remote(t, all[i], "k", 1)
		}
		each := (heapInUse() - before) / n
		t.Logf("M1: %s: %d B with one key", spec, each)
		require.LessOrEqual(t, each, int64(4096), spec)
		for _, l := range all {
			l.Close()
		}
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
