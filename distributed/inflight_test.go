package distributed_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestInFlightHoldsUntilRelease(t *testing.T) {
	server := redistest.Start(t)
	a := must[*distributed.Limiter](t)(newStore(t, server.Client()).InFlight("work", 3, 30*time.Second))
	b := must[*distributed.Limiter](t)(newStore(t, server.Client()).InFlight("work", 3, 30*time.Second))
	first := remote(t, a, "k", 2)
	second := remote(t, b, "k", 1)
	require.True(t, first.Allowed && second.Allowed)
	denied := remote(t, b, "k", 1)
	require.False(t, denied.Allowed)
	require.Equal(t, algo.Quota, denied.Reason)
	require.Positive(t, denied.RetryAfter)
	require.Equal(t, algo.Never, remote(t, a, "k", 4).Reason)
	require.True(t, remote(t, a, "other", 3).Allowed)
	for _, o := range []algo.Outcome{algo.Failed, algo.Failed} {
		first.Release(o) // twice is once
	}
	require.Eventually(t, func() bool { return remote(t, b, "k", 0).Remaining == 2 }, 5*time.Second, time.Millisecond)
	second.Settle(3)
	require.Eventually(t, func() bool { return remote(t, a, "k", 0).Remaining == 0 }, 5*time.Second, time.Millisecond)
	second.Release(algo.Succeeded)
	require.Eventually(t, func() bool { return remote(t, a, "k", 0).Remaining == 3 }, 5*time.Second, time.Millisecond)
	third := remote(t, a, "k", 1) // a settlement far beyond the limit, and its release, cost what the set holds
	third.Settle(1 << 60)
	third.Release(algo.Succeeded)
	require.Eventually(t, func() bool { return remote(t, a, "k", 0).Remaining == 3 }, 5*time.Second, time.Millisecond)
	d := algo.About(a)
	require.Equal(t, algo.Description{Quota: 3, Unit: algo.ConcurrentRequests, NeedsRelease: true, Remote: true}, d)
	requireTTL(t, server)
}

// Work that lasts longer than the expiry keeps its slot; the slot of an
// instance that is gone comes free.
func TestInFlightRenewsAndExpires(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	alive := newStore(t, server.Client())
	dead := newStore(t, server.Client())
	a := must[*distributed.Limiter](t)(alive.InFlight("work", 2, time.Second))
	b := must[*distributed.Limiter](t)(dead.InFlight("work", 2, time.Second))
	held := remote(t, a, "k", 1)
	require.True(t, remote(t, b, "k", 1).Allowed)
	require.NoError(t, dead.Close()) // without a release
	require.False(t, remote(t, a, "k", 1).Allowed)
	began := time.Now()
	require.Eventually(t, func() bool { return remote(t, a, "k", 0).Remaining == 1 }, 10*time.Second, 5*time.Millisecond)
	for time.Since(began) < 2500*time.Millisecond {
		require.Equal(t, int64(1), remote(t, a, "k", 0).Remaining, "the held slot stays held")
		time.Sleep(20 * time.Millisecond)
	}
	held.Release(algo.Succeeded)
	require.Eventually(t, func() bool { return remote(t, a, "k", 0).Remaining == 2 }, 5*time.Second, time.Millisecond)
}

// C1: 0 <= in flight <= limit always, and nothing is left at rest.
func TestC1_InFlightNeverExceedsTheLimit(t *testing.T) {
	server := redistest.Start(t)
	var inFlight, worst, admitted atomic.Int64
	var group sync.WaitGroup
	for range 3 {
		l := must[*distributed.Limiter](t)(newStore(t, server.Client()).InFlight("work", 5, 30*time.Second))
		for range 16 {
			group.Go(func() {
				for range 20 {
					lease, err := l.Acquire(ctx, "k", 1)
					if err != nil || !lease.Allowed {
						continue
					}
					admitted.Add(1)
					now := inFlight.Add(1)
					for w := worst.Load(); now > w && !worst.CompareAndSwap(w, now); w = worst.Load() {
					}
					inFlight.Add(-1)
					lease.Release(algo.Succeeded)
				}
			})
		}
	}
	group.Wait()
	require.LessOrEqual(t, worst.Load(), int64(5))
	require.Positive(t, admitted.Load())
	require.Eventually(t, func() bool { return server.Do("EXISTS", "sluice:{k}:work") == int64(0) },
		5*time.Second, 5*time.Millisecond)
}

func TestInFlightWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var e events
	store := newStore(t, server.Client(), append(quick(&e), distributed.WithInstances(2))...)
	l := must[*distributed.Limiter](t)(store.InFlight("work", 4, 30*time.Second))
	held := remote(t, l, "k", 1)
	server.Kill()
	trip(t, l, &e)
	local := acquire(t, l, "k", 1)
	require.True(t, local.Allowed)
	require.Equal(t, algo.SourceFallback, local.Source)
	denied := acquire(t, l, "k", 1)
	require.False(t, denied.Allowed, "a part of two, and both are held")
	require.Equal(t, algo.Quota, denied.Reason)
	held.Release(algo.Succeeded)
	again := acquire(t, l, "k", 1)
	require.True(t, again.Allowed)
	local.Release(algo.Succeeded)
	again.Release(algo.Canceled)
	require.Equal(t, int64(2), acquire(t, l, "k", 0).Remaining)
}

// Without Redis, a cost that never fits takes no slot, however large.
func TestC1_InFlightNeverFitsWithoutRedis(t *testing.T) {
	l := must[*distributed.Limiter](t)(newStore(t, nowhere(t), distributed.WithInstances(1)).InFlight("work", 3, time.Minute))
	for held := range int64(4) {
		for _, n := range []int64{4, math.MaxInt64} {
			require.Equal(t, algo.Never, acquire(t, l, "k", n).Reason)
			require.Equal(t, 3-held, acquire(t, l, "k", 0).Remaining)
		}
		one := acquire(t, l, "k", 1)
		require.Equal(t, held < 3, one.Allowed)
		one.Settle(math.MaxInt64) // and a settlement forgets no other slot
		one.Settle(1)
	}
}

func TestInFlightNamesTheFieldAndTheValue(t *testing.T) {
	store := newStore(t, nowhere(t))
	for _, tc := range []struct {
		n      int
		expiry time.Duration
		says   string
	}{
		{0, time.Minute, "n is 0"},
		{10_001, time.Minute, "n is 10001"},
		{1, time.Millisecond, "expiry is 1ms"},
		{1, 2 * time.Hour, "expiry is 2h0m0s"},
	} {
		_, err := store.InFlight("work", tc.n, tc.expiry)
		require.ErrorContains(t, err, tc.says)
	}
	l := must[*distributed.Limiter](t)(store.InFlight("work", 1, 30*time.Second))
	require.ErrorContains(t, l.SetRate(algo.PerSecond(1)), "has neither rate nor burst")
	require.ErrorContains(t, l.SetBurst(1), "has neither rate nor burst")
}

// losses are how a server loses units in flight: all or some keys, or, as a hang that is longer than the
// expiry and a clock that steps forward do, their time.
var losses = map[string]func(s *redistest.Server){
	"flushed": func(s *redistest.Server) { s.Flush() },
	"evicted": func(s *redistest.Server) { s.Do("DEL", "sluice:{k}:work") },
	"some, by a failover": func(s *redistest.Server) {
		for _, lease := range s.Do("ZRANGE", "sluice:{k}:work", 11, -1).([]any) {
			s.Do("ZREM", "sluice:{k}:work", lease)
		}
		sum := s.Do("ZRANGE", "sluice:{k}:work", 0, 0).([]any)[0].(string)
		s.Do("ZREM", "sluice:{k}:work", sum)
		s.Do("ZADD", "sluice:{k}:work", 0, sum[:5]+"10")
	},
	"expired": func(s *redistest.Server) {
		for _, lease := range s.Do("ZRANGE", "sluice:{k}:work", 1, -1).([]any) {
			s.Do("ZINCRBY", "sluice:{k}:work", -60_000_000, lease)
		}
	},
}

// Units in flight whose leases Redis has lost are put back: with the next renewal, and after an outage
// before the instance acquires more.
func TestInFlightPutsBackWhatIsMissing(t *testing.T) {
	for name, lose := range losses {
		for _, outage := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", outage ", outage), func(t *testing.T) {
				server := redistest.Start(t)
				virtually(t, server, func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
					var e events
					l := must[*distributed.Limiter](t)(newStore(t, c, quick(&e)...).InFlight("work", 20, 30*time.Second))
					held := make([]algo.Lease, 20)
					for i := range held {
						held[i] = remote(t, l, "k", 1)
						require.True(t, held[i].Allowed)
					}
					for range 3 { // nothing is put back twice
						if outage {
							wire.Set(redistest.Fault{BlackHole: true})
							trip(t, l, &e)
						}
						lose(server)
						if outage {
							wire.Set(redistest.Fault{})
							require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.SourceRemote }, time.Minute, time.Millisecond)
						} else {
							time.Sleep(10 * time.Second) // a third of the expiry
						}
						for range 10 {
							require.False(t, acquire(t, l, "k", 1).Allowed, "20 of 20 are in flight")
						}
						closedAgain(t, distributed.StoreOf(l))
						e.forget()
					}
					held[0].Settle(3)
					held[1].Settle(1 << 60)
					time.Sleep(10 * time.Second)
					for _, lease := range held {
						lease.Release(algo.Succeeded)
					}
					require.Eventually(t, func() bool { return remote(t, l, "k", 0).Remaining == 20 }, time.Minute, time.Millisecond)
					requireTTL(t, server)
				})
			})
		}
	}
}
