package distributed_test

import (
	"fmt"
	"testing"
	"time"

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
