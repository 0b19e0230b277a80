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
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// A larger burst is seen at once.
func TestDenyCacheForgetsAtSetBurst(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(4)))
	remote(t, l, "k", 4)
	require.False(t, acquire(t, l, "k", 1).Allowed)
	require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 1).Source)
	require.NoError(t, l.SetBurst(80))
	require.Equal(t, algo.SourceRemote, acquire(t, l, "k", 1).Source)
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
	for range max(cases.Count(2000, 20_000), 400) {
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

// A charge in this process makes the RetryAfter of a known denial longer, whatever charged.
func TestU2_DenyCacheForgetsAtACharge(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100), distributed.WithInstances(1))
	other := must[*distributed.Limiter](t)(store.TokenBucket("other", algo.PerHour(10)))
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	for name, charge := range map[string]func(l *distributed.Limiter, key string){
		"Acquire": func(l *distributed.Limiter, key string) { remote(t, l, key, 1) },
		"AcquireAll": func(l *distributed.Limiter, key string) {
			acquireAll(t, algo.Request{Limiter: l, Key: key, N: 1}, algo.Request{Limiter: other, Key: key, N: 1})
		},
		"First": func(l *distributed.Limiter, key string) {
			remote(t, prepaid.First(l, credits), key, 1)
		},
		"Ban": func(l *distributed.Limiter, key string) {
			remote(t, must[*distributed.Ban](t)(distributed.NewBan(l, algo.PerHour(9), time.Minute, time.Hour)), key, 1)
		},
		"Reserve": func(l *distributed.Limiter, key string) {
			require.True(t, must[algo.Decision](t)(l.Reserve(ctx, key, "id", 1, time.Hour)).Allowed)
		},
		"Settle": func(l *distributed.Limiter, key string) {
			lease := remote(t, l, key, 0)
			lease.Settle(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := must[*distributed.Limiter](t)(store.TokenBucket(name, algo.PerHour(10)))
			remote(t, l, "k", 5)
			require.InDelta(t, 30, remote(t, l, "k", 10).RetryAfter.Minutes(), 0.9)
			require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 10).Source)
			charge(l, "k")
			require.InDelta(t, 36, acquire(t, l, "k", 10).RetryAfter.Minutes(), 0.9)
		})
	}
}
