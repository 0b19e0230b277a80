package distributed_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Whatever is wrong with the server, decisions go on, are not errors, and say
// that they are the fallback's.
func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		server func(t *testing.T) *redis.Client
		kind   distributed.Kind
		says   string
	}{
		{"out of memory", func(t *testing.T) *redis.Client {
			return redistest.Start(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction").Client()
		}, distributed.BreakerChanged, "OOM"},
		{"read-only replica", func(t *testing.T) *redis.Client {
			return redistest.StartReplica(t, redistest.Start(t)).Client()
		}, distributed.BreakerChanged, "READONLY"},
		{"no replicas for a write", func(t *testing.T) *redis.Client {
			return redistest.Start(t, "--min-replicas-to-write", "1").Client()
		}, distributed.BreakerChanged, "NOREPLICAS"},
		{"password missing", func(t *testing.T) *redis.Client {
			s := redistest.Start(t)
			c := s.Client()
			s.Do("CONFIG", "SET", "requirepass", "secret")
			return c
		}, distributed.Misconfigured, "NOAUTH"},
		{"no right to run scripts", func(t *testing.T) *redis.Client {
			s := redistest.Start(t)
			s.Do("ACL", "SETUSER", "default", "-evalsha", "-eval")
			return s.Client()
		}, distributed.Misconfigured, "NOPERM"},
		{"no right to a command of the script", func(t *testing.T) *redis.Client {
			s := redistest.Start(t)
			s.Do("ACL", "SETUSER", "default", "-get")
			return s.Client()
		}, distributed.Misconfigured, "can't run this command|no permissions to run"},
		{"no right to the keys", func(t *testing.T) *redis.Client {
			s := redistest.Start(t)
			s.Do("ACL", "SETUSER", "default", "resetkeys", "~other:*")
			return s.Client()
		}, distributed.Misconfigured, "NOPERM"},
		{"loading", func(t *testing.T) *redis.Client {
			return redistest.StartLoading(t).Client()
		}, distributed.BreakerChanged, "LOADING"},
		{"scripts unknown", func(t *testing.T) *redis.Client {
			return redistest.Start(t, "--rename-command", "EVALSHA", "").Client()
		}, distributed.Misconfigured, "unknown command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e events
			store := newStore(t, tc.server(t), append(quick(&e), distributed.WithTimeout(patient))...)
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
			for range 10 {
				require.Equal(t, algo.SourceFallback, acquire(t, l, "alice", 1).Source)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			var said []string
			for _, ev := range e.all {
				if ev.Kind == tc.kind && ev.Err != nil {
					said = append(said, ev.Err.Error())
				}
			}
			require.NotEmpty(t, said)
			require.Regexp(t, tc.says, said[0])
		})
	}
}

// TestLeastRights: these rights suffice for every limit, and are documented.
func TestLeastRights(t *testing.T) {
	server := redistest.Start(t)
	server.Do(leastRights(t)...)
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limits", Password: "secret"})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	for _, text := range []string{"100/s", "fixed-window 100/s", "sliding-window 100/s", "sliding-log 100/s"} {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		l := must[*distributed.Limiter](t)(store.Limiter(text, spec))
		for range 3 {
			lease := remote(t, l, "k", 2)
			lease.Settle(200)
			lease.Release(algo.Canceled)
			remote(t, l, "k", 1)
			require.NoError(t, l.Reset(ctx, "k"))
			require.NoError(t, l.Ban(ctx, "k", time.Millisecond))
			server.Do("SCRIPT", "FLUSH")
		}
	}
	l := must[*distributed.Limiter](t)(store.InFlight("busy", 3, 30*time.Second))
	lease := remote(t, l, "k", 1)
	lease.Release(algo.Succeeded)
	require.Eventually(t, func() bool { return store.Stats().Counted }, 10*time.Second, time.Millisecond)
}

// F4: a server that says WRONGTYPE to everything is no server that is away.
func TestF4_WrongTypeOpensNoBreaker(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	var e events
	store := newStore(t, viaProxy(t, proxy), distributed.WithInstances(1), distributed.WithHook(e.hook))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(100)))
	remote(t, l, "k", 1)
	proxy.Set(redistest.Fault{Error: "WRONGTYPE Operation against a key holding the wrong kind of value"})
	for range 50 {
		require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 1).Source)
	}
	require.Empty(t, e.states())
	proxy.Set(redistest.Fault{})
	remote(t, l, "k", 1)
}

// A key of another type is that key's trouble: the others go on, and the
// breaker stays closed.
func TestF4_KeyOfAnotherType(t *testing.T) {
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
	require.Equal(t, int64(1), faults.Load())
	require.Error(t, l.Reset(ctx, "mallory"))
	require.Equal(t, "hash", server.Do("TYPE", "sluice:{mallory}:hourly"), "left alone")
}

// TestErrorsAreShort: an endless reply of a server makes no endless line of a log.
func TestErrorsAreShort(t *testing.T) {
	said := distributed.ReplyError("NOPERM " + strings.Repeat("x", 1<<20)).Error()
	require.Equal(t, "NOPERM "+strings.Repeat("x", 249)+"...", said)
}
