package distributed

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// changedLimits are limits by algorithm, each of which may be changed to each of the others.
var changedLimits = [][]string{
	{"10/day", "1000/min", "10/h burst 3", "2000/day burst 50"},
	{"fixed-window 10/day", "fixed-window 1000/min", "fixed-window 100/h", "fixed-window 5/day", "fixed-window 2000/day"},
	{"sliding-window 10/day", "sliding-window 1000/min", "sliding-window 100/h", "sliding-window 5/day", "sliding-window 2000/day"},
	{"sliding-log 10/day", "sliding-log 1000/min", "sliding-log 100/h", "sliding-log 5/day", "sliding-log 2000/day"},
}

// modest asks for one unit, waits as it is told, and asks again, until it is admitted. It returns how
// long it waited, and fails if a wait did not suffice.
func modest(t *testing.T, l algo.Limiter, key string, sleep func(time.Duration), context string) (waited time.Duration) {
	lease, err := l.Acquire(t.Context(), key, 1)
	require.NoError(t, err)
	if lease.Allowed {
		return 0
	}
	sleep(lease.RetryAfter - time.Millisecond)
	early, err := l.Acquire(t.Context(), key, 1)
	require.NoError(t, err)
	require.False(t, early.Allowed, "%s: RetryAfter of %v is more than needed", context, lease.RetryAfter)
	sleep(time.Millisecond)
	again, err := l.Acquire(t.Context(), key, 1)
	require.NoError(t, err)
	require.True(t, again.Allowed, "%s: RetryAfter of %v did not suffice: %+v", context, lease.RetryAfter, again.Decision)
	return lease.RetryAfter
}

// A changed limit: no key waits longer than one that has just spent the whole new limit,
// locally and on Redis, changed in use and by a deployment.
func TestChangedLimitsAsFreshFullKeys(t *testing.T) {
	client := redistest.Start(t).Client()
	clock := useVirtualClock(t, client)
	newStore := func() *Store {
		s, err := New(client, WithTimeout(5*time.Second), WithInstances(1), WithDenyCache(0), WithFallback(FallbackDeny), WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	old, deployed := newStore(), newStore()
	each := func(check func(context string, from, to algo.Spec)) {
		for _, family := range changedLimits {
			for _, a := range family {
				for _, b := range family {
					from, err1 := algo.Parse(a)
					to, err2 := algo.Parse(b)
					fewer := to.Rate.Period >= from.Rate.Period && to.Rate.Count <= from.Rate.Count || from.Burst > to.Burst // spent units stay
					if a != b && err1 == nil && err2 == nil && !fewer {
						check(fmt.Sprintf("%s -> %s", a, b), from, to)
					}
				}
			}
		}
	}
	spend := func(t *testing.T, l algo.Limiter, key string) {
		for d, err := l.Acquire(t.Context(), key, 0); d.Remaining > 0; d, err = l.Acquire(t.Context(), key, 0) {
			require.NoError(t, err)
			lease, err := l.Acquire(t.Context(), key, d.Remaining)
			require.NoError(t, err)
			require.True(t, lease.Allowed)
		}
	}
	each(func(context string, from, to algo.Spec) {
		if to.Rate.Count < from.Rate.Count { // in the process spent units stay, even above the quota
			return
		}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(90 * time.Second)
			l, fresh := algo.Must(from.New()), algo.Must(to.New())
			spend(t, l, "k")
			require.NoError(t, to.Apply(l))
			spend(t, fresh, "k")
			full := algo.Must(fresh.Acquire(t.Context(), "k", 1)).RetryAfter
			require.LessOrEqual(t, modest(t, l, "k", time.Sleep, "local "+context), full, context)
		})
	})
	each(func(context string, from, to algo.Spec) {
		for _, how := range []string{"in use", "deployed"} {
			context := "Redis, " + how + ": " + context
			clock.sleep(90 * time.Second)
			l, err := old.Limiter("limit", from)
			require.NoError(t, err)
			spend(t, l, context)
			changed := l
			if how == "in use" {
				require.NoError(t, l.SetSpec(to))
			} else {
				changed, err = deployed.Limiter("limit", to)
				require.NoError(t, err)
			}
			spend(t, changed, "fresh")
			full := algo.Must(changed.Acquire(t.Context(), "fresh", 1)).RetryAfter
			require.LessOrEqual(t, modest(t, changed, context, clock.sleep, context), full+time.Millisecond, context)
			require.NoError(t, l.Close())
			require.NoError(t, changed.Close())
			require.NoError(t, client.Del(t.Context(), remote.Key("sluice", "limit", "fresh")).Err())
		}
	})
}
