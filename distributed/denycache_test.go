package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

func TestDenyCacheSparesRedis(t *testing.T) {
	store, server := onRedis(t, distributed.WithDenyCache(100), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(4)))
	remote(t, l, "k", 3)
	first := remote(t, l, "k", 2)
	require.False(t, first.Allowed)
	server.Do("CONFIG", "RESETSTAT")
	for range 100 {
		again := acquire(t, l, "k", 2)
		require.False(t, again.Allowed)
		require.Equal(t, algo.SourceDenyCache, again.Source)
		require.Equal(t, algo.Quota, again.Reason)
		require.Equal(t, first.Limit, again.Limit)
		require.Equal(t, first.Remaining, again.Remaining)
		require.InDelta(t, first.RetryAfter, again.RetryAfter, float64(time.Second))
		require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 3).Source, "a larger cost is denied the more")
	}
	require.Zero(t, evalCalls(server))
	require.True(t, remote(t, l, "k", 1).Allowed, "a smaller cost is not")
	require.Equal(t, algo.Never, acquire(t, l, "k", 5).Reason)
}

// Whatever is done to the key in this process is seen at once.
func TestDenyCacheForgets(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(4)))
	for name, undo := range map[string]func(lease *algo.Lease){
		"release":  func(lease *algo.Lease) { lease.Release(algo.Canceled) },
		"settle":   func(lease *algo.Lease) { lease.Settle(0) },
		"reset":    func(*algo.Lease) { require.NoError(t, l.Reset(ctx, "k")) },
		"SetRate":  func(*algo.Lease) { require.NoError(t, l.SetRate(algo.PerHour(40))) },
		"SetBurst": func(*algo.Lease) { require.NoError(t, l.SetBurst(80)) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, l.SetRate(algo.PerHour(4)))
			require.NoError(t, l.SetBurst(4))
			require.NoError(t, l.Reset(ctx, "k"))
			lease := remote(t, l, "k", 4)
			require.False(t, acquire(t, l, "k", 1).Allowed)
			require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 1).Source)
			undo(&lease)
			require.Equal(t, algo.SourceRemote, acquire(t, l, "k", 1).Source)
		})
	}
}

// A proof is exact: the server would deny the same request, to the microsecond
// at which it admits it.
func TestDenyCacheIsExact(t *testing.T) {
	store, server := onRedis(t, distributed.WithDenyCache(100), distributed.WithInstances(1))
	exact := newStore(t, server.Client())
	opts := []algo.Option{algo.Burst(3), algo.MaxWait(5 * time.Millisecond)}
	cached := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.Every(7*time.Millisecond), opts...))
	plain := must[*distributed.Limiter](t)(exact.TokenBucket("a", algo.Every(7*time.Millisecond), opts...))
	rnd := rand.New(rand.NewPCG(1, 2))
	denials := 0
	for range 2000 {
		n := 1 + rnd.Int64N(3)
		// The plain peek comes later, so the bucket may be fuller by then. It
		// must not find room from long before the cache denied.
		began := time.Now()
		d := acquire(t, cached, "k", n)
		if d.Source != algo.SourceDenyCache {
			continue
		}
		denials++
		left := remote(t, plain, "k", 0)
		if left.Remaining >= n {
			// There is room now: it has come since, within the time of one round
			// trip and the drift of a second.
			require.LessOrEqual(t, left.NextAfter, 7*time.Millisecond)
			require.LessOrEqual(t, left.Remaining, n+int64(time.Since(began)/(7*time.Millisecond)))
		}
		time.Sleep(min(d.RetryAfter, time.Duration(rnd.Int64N(int64(time.Millisecond)))))
	}
	require.Positive(t, denials)
}

// Waiting for the RetryAfter of a cached denial suffices.
func TestDenyCacheRetryAfterSuffices(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.Every(20*time.Millisecond), algo.Burst(2)))
	remote(t, l, "k", 2)
	for range 20 {
		for acquire(t, l, "k", 2).Source != algo.SourceDenyCache {
		}
		d := acquire(t, l, "k", 2)
		if d.Allowed {
			continue
		}
		time.Sleep(d.RetryAfter)
		require.True(t, acquire(t, l, "k", 2).Allowed)
	}
}

func TestDenyCacheIsBounded(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(32))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1)))
	var group sync.WaitGroup
	var wrong atomic.Int64
	for w := range 8 {
		group.Go(func() {
			for i := range 100 {
				key := fmt.Sprint(w, "/", i)
				for want := range 3 {
					if lease, err := l.Acquire(ctx, key, 1); err != nil || lease.Allowed != (want == 0) {
						wrong.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	require.Zero(t, wrong.Load())
	require.LessOrEqual(t, distributed.Proofs(store), 32)
	require.Positive(t, distributed.Proofs(store))
}
