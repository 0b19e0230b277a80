package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

func TestFallbackPolicies(t *testing.T) {
	for _, tc := range []struct {
		policy  distributed.Fallback
		allowed int
		reason  algo.Reason
	}{
		{distributed.Local, 5, algo.Quota}, // a half of ten
		{distributed.AllowAll, 20, algo.Admitted},
		{distributed.DenyAll, 0, algo.Overload},
	} {
		t.Run(fmt.Sprint(tc.policy), func(t *testing.T) {
			store := newStore(t, nowhere(t), distributed.WithFallback(tc.policy), distributed.WithInstances(2),
				distributed.WithTimeout(100*time.Millisecond))
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
			allowed := 0
			var last algo.Lease
			for range 20 {
				if last = acquire(t, l, "alice", 1); last.Allowed {
					allowed++
				}
				require.Equal(t, algo.SourceFallback, last.Source)
			}
			require.Equal(t, tc.allowed, allowed)
			require.Equal(t, tc.reason, last.Reason)
			require.Equal(t, !last.Allowed, last.RetryAfter > 0)
			never := acquire(t, l, "alice", 11)
			require.Equal(t, algo.Never, never.Reason)
			require.Equal(t, algo.SourceFallback, never.Source)
			require.True(t, acquire(t, l, "alice", 0).Allowed, "looking is free")
		})
	}
}

// What fits the limit but not this instance's part is not the caller's fault.
func TestCostBeyondThePartIsOverload(t *testing.T) {
	store := newStore(t, nowhere(t), distributed.WithInstances(4), distributed.WithTimeout(100*time.Millisecond))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	d := acquire(t, l, "alice", 7)
	require.False(t, d.Allowed)
	require.Equal(t, algo.Overload, d.Reason)
	require.NotEqual(t, algo.Forever, d.RetryAfter)
}

// A local admission can be given back like any other.
func TestFallbackLeasesAreReleased(t *testing.T) {
	store := newStore(t, nowhere(t), distributed.WithInstances(1), distributed.WithTimeout(100*time.Millisecond))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	lease := acquire(t, l, "alice", 10)
	require.True(t, lease.Allowed)
	lease.Release(algo.Canceled)
	require.True(t, acquire(t, l, "alice", 10).Allowed)
}

// Going over to local decisions hands out no fresh burst.
func TestFallbackIsWarm(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var e events
	store := newStore(t, server.Client(), quick(&e)...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	remote(t, l, "alice", 10)
	remote(t, l, "bob", 4)
	server.Kill()
	trip(t, l, &e)
	require.False(t, acquire(t, l, "alice", 1).Allowed)
	require.Equal(t, int64(6), acquire(t, l, "bob", 0).Remaining)
	require.Equal(t, int64(10), acquire(t, l, "carol", 0).Remaining)
}

// fleet is several instances on one server.
type fleet struct {
	limiters []*distributed.Limiter
	events   []*events
}

func startFleet(t *testing.T, n int, addr string, rate algo.Rate, opts ...distributed.Option) *fleet {
	f := new(fleet)
	for range n {
		c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 300 * time.Millisecond, DialerRetries: 1, PoolSize: 4})
		t.Cleanup(func() { _ = c.Close() })
		e := new(events)
		all := append([]distributed.Option{
			distributed.WithTimeout(100 * time.Millisecond),
			distributed.WithProbeInterval(100 * time.Millisecond), distributed.WithHook(e.hook),
		}, opts...)
		l := must[*distributed.Limiter](t)(newStore(t, c, all...).TokenBucket("shared", rate))
		f.limiters, f.events = append(f.limiters, l), append(f.events, e)
	}
	return f
}

// settled waits until every instance knows of all: the parts add up.
func (f *fleet) settled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		ok := true
		for i, l := range f.limiters {
			acquire(t, l, "warm up", 0)
			ok = ok && distributed.Instances(l) == len(f.limiters) && len(f.events[i].states()) == 0
		}
		return ok
	}, 20*time.Second, 10*time.Millisecond)
}

// Peers give every instance the whole limit when Redis is away. Here the parts
// of eight instances add up to the limit, whatever divides.
func TestPartsOfTheFleetAddUpToTheLimit(t *testing.T) {
	t.Parallel()
	for _, burst := range []int64{100, 7, 3} {
		t.Run(fmt.Sprint(burst), func(t *testing.T) {
			server := redistest.Start(t)
			f := startFleet(t, 8, server.Addr(), algo.Per(burst, 24*time.Hour))
			f.settled(t)
			server.Kill()
			var admitted int64
			for i, l := range f.limiters {
				trip(t, l, f.events[i])
				for range 2 * burst {
					if acquire(t, l, "alice", 1).Allowed {
						admitted++
					}
				}
			}
			require.Equal(t, burst, admitted)
		})
	}
}

// An instance that closes hands its part to the others at once.
func TestInstancesThatLeaveAreNotCounted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := startFleet(t, 3, server.Addr(), algo.PerHour(10))
	f.settled(t)
	require.Equal(t, int64(3), server.Do("ZCARD", "sluice:{::instances}"))
	require.NoError(t, distributed.StoreOf(f.limiters[0]).Close())
	require.Equal(t, int64(2), server.Do("ZCARD", "sluice:{::instances}"))
	requireTTL(t, server)
}
