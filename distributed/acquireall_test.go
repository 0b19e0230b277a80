package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func acquireAll(t testing.TB, reqs ...algo.Request) algo.Lease {
	t.Helper()
	lease, err := algo.AcquireAll(ctx, reqs...)
	require.NoError(t, err)
	return lease
}

// A bucket for the service, one for the API in it and one for the caller: one
// step on the server, and all or nothing.
func TestW4_SeveralLevelsAreOneStep(t *testing.T) {
	store, server := onRedis(t)
	require.NoError(t, store.Ping(ctx))
	service := must[*distributed.Limiter](t)(store.TokenBucket("service", algo.PerHour(6)))
	api := must[*distributed.Limiter](t)(store.TokenBucket("api", algo.PerHour(4)))
	user := must[*distributed.Limiter](t)(store.TokenBucket("user", algo.PerHour(2)))
	levels := func(who string) []algo.Request {
		return []algo.Request{{Limiter: service, N: 1}, {Limiter: api, Key: "search", N: 1}, {Limiter: user, Key: who, N: 1}}
	}
	require.True(t, acquireAll(t, levels("alice")...).Allowed)
	server.Do("CONFIG", "RESETSTAT")
	lease := acquireAll(t, levels("alice")...)
	require.True(t, lease.Allowed)
	require.LessOrEqual(t, evalCalls(server), 2, "one step, and perhaps a sign of life")
	require.Equal(t, algo.SourceRemote, lease.Parts()[2].Source)

	denied := acquireAll(t, levels("alice")...)
	require.False(t, denied.Allowed)
	parts := denied.Parts()
	require.Len(t, parts, 3)
	require.True(t, parts[0].Allowed && parts[1].Allowed)
	require.False(t, parts[2].Allowed, "it says which one denied")
	require.Equal(t, int64(4), remote(t, service, "", 0).Remaining, "nothing was charged")
	require.Equal(t, int64(2), remote(t, api, "search", 0).Remaining)

	lease.Release(algo.Canceled)
	require.Equal(t, int64(5), remote(t, service, "", 0).Remaining)
	require.Equal(t, int64(1), remote(t, user, "alice", 0).Remaining)
	require.Equal(t, algo.Never, acquireAll(t, algo.Request{Limiter: service, N: 1},
		algo.Request{Limiter: user, Key: "bob", N: 3}).Reason)
	require.Equal(t, int64(2), remote(t, user, "bob", 0).Remaining)
	require.Equal(t, int64(5), remote(t, service, "", 0).Remaining)
}

// The same bucket twice in one request counts twice.
func TestTheSameBucketTwice(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(5)))
	twice := func(n int64) algo.Lease {
		return acquireAll(t, algo.Request{Limiter: l, Key: "k", N: n}, algo.Request{Limiter: l, Key: "k", N: n})
	}
	require.True(t, twice(2).Allowed)
	require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining)
	require.Equal(t, algo.Quota, twice(1).Reason)
	require.Equal(t, algo.Never, twice(3).Reason, "six never fit")
	require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining)
}

// W4: under contention, each level admits its quota and no more, and the
// levels agree on the number of units.
func TestW4_LevelsAgreeUnderContention(t *testing.T) {
	store, _ := onRedis(t)
	service := must[*distributed.Limiter](t)(store.TokenBucket("service", algo.PerDay(100)))
	user := must[*distributed.Limiter](t)(store.TokenBucket("user", algo.PerDay(30)))
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for range 10 {
				n := 1 + rnd.Int64N(3)
				lease, err := algo.AcquireAll(ctx, algo.Request{Limiter: service, N: n},
					algo.Request{Limiter: user, Key: fmt.Sprint(rnd.IntN(5)), N: n})
				if err == nil && lease.Allowed {
					admitted.Add(n)
				}
			}
		})
	}
	group.Wait()
	left := remote(t, service, "", 0).Remaining
	require.Equal(t, int64(100), admitted.Load()+left)
	var users int64
	for i := range 5 {
		users += 30 - remote(t, user, fmt.Sprint(i), 0).Remaining
	}
	require.Equal(t, admitted.Load(), users)
}

// In a cluster, keys of one caller are one step; others are charged in turn.
func TestLevelsInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	hourly := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(3)))
	daily := must[*distributed.Limiter](t)(store.TokenBucket("daily", algo.PerDay(2)))
	alice := func(l algo.Limiter) algo.Request { return algo.Request{Limiter: l, Key: "alice", N: 1} }
	require.True(t, hourly.Batches(alice(hourly), alice(daily)))
	require.False(t, hourly.Batches(alice(hourly), algo.Request{Limiter: daily, Key: "bob"}))
	for i := range 4 {
		require.Equal(t, i < 2, acquireAll(t, alice(hourly), alice(daily)).Allowed)
	}
	require.Equal(t, int64(1), remote(t, hourly, "alice", 0).Remaining)
	require.True(t, acquireAll(t, alice(hourly), algo.Request{Limiter: daily, Key: "bob", N: 1}).Allowed)
}

// A reply that comes too late is taken back on every level.
func TestLateLevelsAreRefunded(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		store := newStore(t, c, distributed.WithInstances(1))
		a := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
		b := must[*distributed.Limiter](t)(store.TokenBucket("b", algo.PerHour(10)))
		both := []algo.Request{{Limiter: a, Key: "k", N: 3}, {Limiter: b, Key: "k", N: 4}}
		first := acquireAll(t, both...)
		require.Equal(t, algo.SourceRemote, first.Source)
		first.Release(algo.Canceled)
		wire.Set(redistest.Fault{Delay: patient + time.Second})
		require.Equal(t, algo.SourceFallback, acquireAll(t, both...).Source)
		wire.Set(redistest.Fault{})
		for _, l := range []*distributed.Limiter{a, b} {
			require.Eventually(t, func() bool { return remoteNow(t, l, "k") == 10 }, time.Minute, 10*time.Millisecond)
		}
	})
}

func TestLevelsWithoutRedis(t *testing.T) {
	store := newStore(t, nowhere(t), distributed.WithInstances(1), distributed.WithTimeout(100*time.Millisecond))
	a := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	b := must[*distributed.Limiter](t)(store.TokenBucket("b", algo.PerHour(2)))
	both := []algo.Request{{Limiter: a, Key: "k", N: 1}, {Limiter: b, Key: "k", N: 1}}
	for i := range 5 {
		lease := acquireAll(t, both...)
		require.Equal(t, i < 2, lease.Allowed)
	}
	require.Equal(t, int64(8), acquire(t, a, "k", 0).Remaining, "denials charge no level")
}

// A window on Redis behind a denial is peeked, whether a batch decides its kind or not.
func TestWindowBehindADenial(t *testing.T) {
	store, _ := onRedis(t)
	denies := algo.DenyAll()
	for name, make := range makers(store) {
		l := must[*distributed.Limiter](t)(make("behind "+name, algo.PerDay(3)))
		remote(t, l, "k", 2)
		lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: denies, Key: "k", N: 1},
			algo.Request{Limiter: l, Key: "k", N: 1}, algo.Request{Limiter: algo.Shadow(l), Key: "k", N: 2})
		require.NoError(t, err)
		require.False(t, lease.Allowed)
		require.True(t, lease.Parts()[1].Allowed, name)
		require.Equal(t, int64(1), remote(t, l, "k", 0).Remaining, name)
	}
}

// After a denial over limits of different kinds, each is shown as before its charge, which was
// given back.
func TestDenialsShowNoChargeThatWasGivenBack(t *testing.T) {
	store, _ := onRedis(t)
	roomy := must[*distributed.Limiter](t)(store.TokenBucket("roomy", algo.PerDay(1000)))
	full := must[*distributed.Limiter](t)(store.FixedWindow("full", algo.PerDay(1)))
	slots := algo.Must(adaptive.New(adaptive.Fixed(1)))
	remote(t, full, "k", 1)
	_, err := slots.Acquire(t.Context(), "", 1)
	require.NoError(t, err)
	for name, denies := range map[string]algo.Limiter{"in another step": full, "in this process": slots} {
		lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: roomy, Key: "k", N: 50}, algo.Request{Limiter: denies, Key: "k", N: 1})
		require.NoError(t, err)
		require.False(t, lease.Allowed, name)
		require.EqualValues(t, 1000, lease.Parts()[0].Remaining, name)
	}
	require.EqualValues(t, 1000, remote(t, roomy, "k", 0).Remaining)
}
