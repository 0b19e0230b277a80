package distributed_test

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestF3_BreakerOpensProbesAndRamps(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		var e events
		l := must[*distributed.Limiter](t)(newStore(t, c, quick(&e)...).TokenBucket("a", algo.PerHour(1000)))
		remote(t, l, "alice", 1)

		wire.Set(redistest.Fault{BlackHole: true})
		trip(t, l, &e)
		began := time.Now()
		for range 1000 {
			require.Equal(t, algo.SourceFallback, acquire(t, l, "alice", 0).Source)
		}
		require.Zero(t, time.Since(began), "no call waits while the breaker is open")

		wire.Set(redistest.Fault{})
		closedAgain(t, distributed.StoreOf(l))
		require.Equal(t, []distributed.Phase{distributed.PhaseOpen, distributed.PhaseRamping, distributed.PhaseClosed}, e.states())
		remote(t, l, "alice", 1)
	})
}

// F2: while the breaker is open at most one call goes out in a probe interval, also where there is something
// to give back.
func TestF2_ProbesAreFew(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var e events
	client, m := server.Client(), &gauge{settle: 100 * time.Millisecond}
	client.AddHook(m)
	store := newStore(t, client, append(quick(&e), distributed.WithHook(func(ev distributed.Event) { e.hook(ev); m.event(ev) }))...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	require.Eventually(t, func() bool { return acquire(t, l, "alice", 1).Source == algo.SourceRemote },
		20*time.Second, time.Millisecond)
	spent := remote(t, l, "alice", 10)
	// A read-only server answers PING and every peek; only a write fails.
	server.Do("CONFIG", "SET", "maxmemory", "1")
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	require.Eventually(t, func() bool { acquire(t, l, "alice", 1); return len(e.states()) > 0 },
		10*time.Second, time.Millisecond)
	spent.Release(algo.Canceled) // no refund is written
	began := time.Now()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for time.Since(began) < time.Second {
				_, _ = l.Acquire(ctx, "alice", 1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	group.Wait()
	m.freeze()
	require.LessOrEqual(t, float64(m.calls), m.intervals()+1)
	require.Positive(t, m.calls)
	require.Len(t, e.states(), 1, "it did not close: %v", e.states())

	server.Do("CONFIG", "SET", "maxmemory", "0")
	require.Eventually(t, func() bool { return acquire(t, l, "alice", 0).Source == algo.SourceRemote },
		20*time.Second, 10*time.Millisecond)
}

func TestRestartsUnderLoadAreNoErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var e events
	store := newStore(t, server.Client(), quick(&e)...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1000)))
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := l.Acquire(ctx, "alice", 1); err != nil {
					t.Errorf("acquire: %v", err)
				}
			}
		})
	}
	for range 2 {
		server.Restart()
		require.Eventually(t, func() bool { return acquire(t, l, "bob", 0).Source == algo.SourceRemote },
			20*time.Second, 10*time.Millisecond)
	}
	close(stop)
	group.Wait()
}

func TestSentinelFailover(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	s := redistest.StartSentinels(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs})
	t.Cleanup(func() { _ = c.Close() })
	var e events
	store := newStore(t, c, quick(&e)...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(100)))
	require.Eventually(t, func() bool { return acquire(t, l, "alice", 60).Source == algo.SourceRemote },
		10*time.Second, 10*time.Millisecond)
	s.Master.Do("WAIT", 1, 1000)
	s.Master.Kill()
	require.Eventually(t, func() bool { return acquire(t, l, "bob", 1).Source == algo.SourceRemote },
		30*time.Second, 10*time.Millisecond)
	require.LessOrEqual(t, acquire(t, l, "alice", 0).Remaining, int64(40), "replicated charges stay")
}
