package distributed_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
)

// leaving are contexts of callers that leave: before they ask, at once, and within a round trip.
func leaving(i int) (context.Context, context.CancelFunc) {
	switch i % 3 {
	case 0:
		gone, cancel := context.WithCancel(ctx)
		cancel()
		return gone, cancel
	case 1:
		return context.WithTimeout(ctx, 20*time.Microsecond)
	}
	return context.WithTimeout(ctx, 200*time.Microsecond)
}

// A caller that has left is no outage: while Redis answers, none is decided locally, so
// nobody gets a second limit by leaving.
func TestCallersThatHaveLeftAreDenied(t *testing.T) {
	t.Parallel()
	const quota, callers = 300, 8
	for _, policy := range []distributed.Fallback{distributed.FallbackLocal, distributed.FallbackAllow, distributed.FallbackDeny} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			store, _ := onRedis(t, distributed.WithFallback(policy), distributed.WithInstances(1))
			bucket := must[*distributed.Limiter](t)(store.TokenBucket("bucket", algo.PerDay(quota)))
			window := must[*distributed.Limiter](t)(store.FixedWindow("window", algo.PerDay(quota)))
			slots := must[*distributed.Limiter](t)(store.InFlight("slots", 5, 30*time.Second))
			ban := must[*distributed.Ban](t)(distributed.NewBan(bucket, algo.PerHour(1000), time.Second, time.Minute))
			credits := must[*distributed.Credits](t)(store.Credits("credits"))
			first := prepaid.First(window, credits)
			for name, l := range map[string]algo.Limiter{"bucket": bucket, "window": window, "slots": slots, "ban": ban, "first": first, "both": algo.All(bucket, window)} {
				remote(t, bucket, name, 1) // the connections are open
				var admitted atomic.Int64
				var group sync.WaitGroup
				for c := range callers {
					group.Go(func() {
						for i := range 150 {
							ctx, cancel := leaving(i + c)
							lease, err := l.Acquire(ctx, name+" key", 1)
							cancel()
							if err == nil && lease.Allowed && lease.Source == algo.SourceFallback {
								admitted.Add(1)
							}
							lease.Release(algo.Canceled)
						}
					})
				}
				group.Wait()
				require.Zero(t, admitted.Load(), "%s: admitted without Redis, while Redis answers", name)
				require.Equal(t, distributed.PhaseClosed, store.Stats().Phase, name)
			}
		})
	}
}

// Every verb says why it was not done.
func TestVerbsOfCallersThatHaveLeft(t *testing.T) {
	store, _ := onRedis(t)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	l := must[*distributed.Limiter](t)(store.TokenBucket("bucket", algo.PerDay(10)))
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	ban := must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerHour(1000), time.Second, time.Minute))
	second := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Reset": l.Reset(gone, "k"), "Ban": l.Ban(gone, "k", time.Second), "Refund": second(l.Refund(gone, "k", 1)),
		"Reserve": second(l.Reserve(gone, "k", "id", 1, time.Minute)), "SettleReserved": l.SettleReserved(gone, "k", "id", 1),
		"TopUp": credits.TopUp(gone, "k", "id", 1), "Balance": second(credits.Balance(gone, "k")),
		"Ban.Reset": ban.Reset(gone, "k"), "Banned": second(ban.Banned(gone, "k")),
	} {
		require.ErrorIs(t, err, distributed.ErrUnavailable, name)
		require.True(t, errors.Is(err, context.Canceled), "%s: %v", name, err)
	}
	require.Equal(t, int64(10), remote(t, l, "k", 0).Remaining)
}

// Requests that nobody awaits any more take no room of the queue from others.
func TestAbandonedRequestsLeaveTheQueue(t *testing.T) {
	t.Parallel()
	store, _ := onRedis(t, distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerDay(1_000_000)))
	remote(t, l, "k", 1)
	var local, all atomic.Int64
	stop := busy(64, func() int64 {
		ctx, cancel := leaving(int(all.Add(1)))
		defer cancel()
		_, _ = l.Acquire(ctx, "k", 0)
		return 0
	})
	for range 200 {
		if acquire(t, l, "k", 1).Source == algo.SourceFallback {
			local.Add(1)
		}
	}
	stop()
	require.Zero(t, local.Load())
}
