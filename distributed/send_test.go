package distributed_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// viaProxy makes a client with go-redis' defaults, which repeat what fails.
func viaProxy(t testing.TB, p *redistest.Proxy) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// go-redis/redis_rate consumes four times when replies are lost: the client
// repeats the script by itself.
func TestLostReplyConsumesOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"cut", redistest.Fault{Command: "evalsha", Kth: 1, Cut: true}},
		{"half-close", redistest.Fault{Command: "evalsha", Kth: 1, HalfClose: true}},
		{"lose", redistest.Fault{Command: "evalsha", Kth: 1, Lose: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server)
			store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(500*time.Millisecond), distributed.WithInstances(1))
			l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
			require.Equal(t, int64(9), remote(t, l, "alice", 1).Remaining, "the script is loaded")

			proxy.Set(tc.fault)
			lost := acquire(t, l, "alice", 1)
			require.Equal(t, algo.SourceFallback, lost.Source)
			require.Equal(t, 1, proxy.Hits())
			proxy.Set(redistest.Fault{})
			require.Equal(t, int64(8), remote(t, l, "alice", 0).Remaining, "executed once")
		})
	}
}

// The answer to a caller who has given up is still read, and what it charged is
// given back.
func TestLateReplyIsRefunded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	client := viaProxy(t, proxy)
	store := newStore(t, client, distributed.WithTimeout(50*time.Millisecond), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	require.Eventually(t, func() bool { return acquire(t, l, "alice", 0).Source == algo.SourceRemote },
		5*time.Second, time.Millisecond)

	proxy.Set(redistest.Fault{Delay: 200 * time.Millisecond})
	require.Equal(t, algo.SourceFallback, acquire(t, l, "alice", 5).Source)
	proxy.Set(redistest.Fault{})
	direct := must[*distributed.Limiter](t)(newStore(t, server.Client()).TokenBucket("hourly", algo.PerHour(10)))
	require.Eventually(t, func() bool { return remote(t, direct, "alice", 0).Remaining == 10 },
		5*time.Second, 10*time.Millisecond)
}

// F1: whatever Redis does, a decision comes within the timeout, or the
// context's deadline if that is sooner.
func TestDecisionsKeepTheDeadline(t *testing.T) {
	t.Parallel()
	const timeout, grace = 50 * time.Millisecond, 200 * time.Millisecond
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"refused", redistest.Fault{Refuse: true}},
		{"reset", redistest.Fault{Reset: true}},
		{"black hole", redistest.Fault{BlackHole: true}},
		{"slow", redistest.Fault{Delay: 10 * time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := redistest.StartProxy(t, redistest.Start(t))
			proxy.Set(tc.fault)
			store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(timeout))
			l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
			var worst time.Duration
			for range 50 {
				began := time.Now()
				lease := acquire(t, l, "alice", 1)
				worst = max(worst, time.Since(began))
				require.Equal(t, algo.SourceFallback, lease.Source)
				require.True(t, lease.Allowed)
			}
			require.Less(t, worst, timeout+grace)
		})
	}
}

func TestTheContextsDeadlineIsKeptToo(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	proxy.Set(redistest.Fault{BlackHole: true})
	store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(30*time.Second))
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	lease, err := l.Acquire(soon, "alice", 1)
	require.NoError(t, err)
	require.Equal(t, algo.SourceFallback, lease.Source)
}

// A server that loses its scripts, and one that restarts, are no error for
// anybody.
func TestScriptFlushUnderLoad(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("fast", algo.PerSecond(100_000)))
	stop := make(chan struct{})
	var decisions, fallbacks atomic.Int64
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := l.Acquire(ctx, fmt.Sprint("user", i%4), 1)
				if err != nil || lease.Source != algo.SourceRemote {
					fallbacks.Add(1)
				}
				decisions.Add(1)
			}
		})
	}
	for range 50 {
		server.Do("SCRIPT", "FLUSH")
	}
	close(stop)
	group.Wait()
	require.Positive(t, decisions.Load())
	require.Zero(t, fallbacks.Load(), "of %d decisions", decisions.Load())
}

// A denial reads one key and writes nothing.
func TestDenialWritesNothing(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(2)))
	require.True(t, remote(t, l, "alice", 2).Allowed)
	server.Do("CONFIG", "RESETSTAT")
	ttl := server.Do("PTTL", "sluice:{alice}:hourly").(int64)
	for range 20 {
		require.False(t, acquire(t, l, "alice", 1).Allowed)
		require.False(t, acquire(t, l, "alice", 3).Allowed)
	}
	stats := fmt.Sprint(server.Do("INFO", "commandstats"))
	for _, write := range []string{"cmdstat_set:", "cmdstat_del:", "cmdstat_pexpire:"} {
		require.NotContains(t, stats, write)
	}
	require.Contains(t, stats, "cmdstat_get:")
	require.LessOrEqual(t, server.Do("PTTL", "sluice:{alice}:hourly").(int64), ttl, "not renewed")
}

// The clocks of the instances do not matter: the state has the server's time
// alone. Two instances with clocks seconds apart therefore send the very same
// commands, and share one bound.
func TestTwoInstancesShareOneLimit(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rate := algo.Per(20, time.Second)
	began := time.Now()
	var admitted atomic.Int64
	var group sync.WaitGroup
	for range 2 {
		store := newStore(t, server.Client())
		l := must[*distributed.Limiter](t)(store.TokenBucket("shared", rate))
		for range 4 {
			group.Go(func() {
				for time.Since(began) < 500*time.Millisecond {
					if lease, err := l.Acquire(ctx, "alice", 1); err == nil && lease.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	elapsed := time.Since(began)
	require.LessOrEqual(t, admitted.Load(), 20+int64(20*elapsed.Seconds())+1)
	require.GreaterOrEqual(t, admitted.Load(), int64(20))
}

// Keys that are made to hurt are keys like any other.
func TestHostileKeysAreApart(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(2)))
	long := strings.Repeat("x", 64<<10)
	keys := []string{"", "a", "{a}", "a}", "{", "}", "{}", "a:b", ":", "a\x00", "a\n", "a\r\n*1\r\n$8\r\nFLUSHALL\r\n",
		"%7B", "~", " ", "é", "\xff\xfe", long, long + "y", "a}:hourly", "}:{b}:hourly"}
	for range 2 {
		for _, k := range keys {
			require.True(t, remote(t, l, k, 1).Allowed, "%.40q", k)
		}
	}
	for _, k := range keys {
		require.False(t, acquire(t, l, k, 1).Allowed, "%.40q", k)
	}
	require.Equal(t, int64(len(keys)), server.Do("DBSIZE").(int64)-registryKeys(server))
	requireTTL(t, server)
}

// registryKeys counts the keys that are not limits'.
func registryKeys(s *redistest.Server) int64 {
	return s.Do("EXISTS", "sluice:{::instances}").(int64)
}

func requireTTL(t *testing.T, s *redistest.Server) {
	t.Helper()
	for _, k := range s.Do("KEYS", "*").([]any) {
		require.NotEqual(t, int64(-1), s.Do("PTTL", k), "key %q has no TTL", k)
	}
}

// A key of another type is that key's trouble: the others go on, and the
// breaker stays closed.
func TestKeyOfAnotherTypeHurtsNobodyElse(t *testing.T) {
	var faults atomic.Int64
	store, server := onRedis(t, distributed.WithHook(func(e distributed.Event) {
		if e.Kind == distributed.KeyFault {
			faults.Add(1)
		}
		if e.Kind == distributed.BreakerChanged {
			t.Errorf("breaker: %+v", e)
		}
	}))
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
	server.Do("HSET", "sluice:{mallory}:hourly", "field", "value")
	for range 20 {
		require.Equal(t, algo.SourceFallback, acquire(t, l, "mallory", 1).Source)
		remote(t, l, "alice", 1)
	}
	require.Equal(t, int64(20), faults.Load())
	require.Error(t, l.Reset(ctx, "mallory"))
	require.Equal(t, "hash", server.Do("TYPE", "sluice:{mallory}:hourly"), "left alone")
}
