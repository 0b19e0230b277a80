package distributed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestFallbackPolicies(t *testing.T) {
	for _, tc := range []struct {
		policy  distributed.Fallback
		allowed int
		reason  algo.Reason
	}{
		{distributed.FallbackLocal, 5, algo.Quota}, // a half of ten
		{distributed.FallbackAllow, 20, algo.Admitted},
		{distributed.FallbackDeny, 0, algo.Overload},
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
			require.True(t, acquire(t, l, "alice", 0).Allowed, "a peek is free")
		})
	}
}

// A cost that fits the limit but not this instance's share is Overload.
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

// A lease of 0 units that no limiter has decided is charged with what it is settled to, as soon as Redis answers.
func TestLeasesOfNothingAreSettledLater(t *testing.T) {
	settled := func(t *testing.T, l *distributed.Limiter, leases ...algo.Lease) {
		for i := range leases {
			require.True(t, leases[i].Allowed)
			require.Equal(t, algo.SourceFallback, leases[i].Source)
			leases[i].Settle(int64(3 + i))
		}
		require.Eventually(t, func() bool { return remoteNow(t, l, "k") == 3 }, 10*time.Second, time.Millisecond)
		free := int64(3)
		if algo.About(l).NeedsRelease {
			free = 10
		}
		for i := range leases {
			leases[i].Release(algo.Succeeded)
		}
		require.Eventually(t, func() bool { return remoteNow(t, l, "k") == free }, 10*time.Second, time.Millisecond)
	}
	t.Run("the caller has left", func(t *testing.T) {
		store, _ := onRedis(t)
		all := []*distributed.Limiter{must[*distributed.Limiter](t)(store.InFlight("in flight", 10, time.Minute))}
		for name, make := range makers(store) {
			all = append(all, must[*distributed.Limiter](t)(make(name, algo.PerHour(10))))
		}
		for _, l := range all {
			remote(t, l, "k", 0)
			gone, cancel := context.WithCancel(ctx)
			cancel()
			settled(t, l, must[algo.Lease](t)(l.Acquire(gone, "k", 0)), must[algo.Lease](t)(l.Acquire(gone, "k", 0)))
		}
	})
	t.Run("denied without Redis", func(t *testing.T) {
		e := &events{}
		store, server := onRedis(t, append(quick(e), distributed.WithFallback(distributed.FallbackDeny))...)
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
		server.Kill()
		for len(e.states()) == 0 {
			acquire(t, l, "k", 0)
		}
		first, second := acquire(t, l, "k", 0), acquire(t, l, "k", 0)
		server.Restart()
		settled(t, l, first, second)
	})
}
