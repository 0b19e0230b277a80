package distributed_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// events keeps what a hook hears.
type events struct {
	mu  sync.Mutex
	all []distributed.Event
}

func (e *events) hook(ev distributed.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

// states are the breaker's, in order.
func (e *events) states() (out []distributed.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Kind == distributed.BreakerChanged {
			out = append(out, ev.State)
		}
	}
	return out
}

// quick are options for tests in which Redis fails.
func quick(e *events) []distributed.Option {
	return []distributed.Option{
		distributed.WithTimeout(100 * time.Millisecond),
		distributed.WithProbeInterval(100 * time.Millisecond),
		distributed.WithInstances(1),
		distributed.WithHook(e.hook),
	}
}

// trip acquires until the breaker is open.
func trip(t *testing.T, l algo.Limiter, e *events) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.Equal(t, algo.SourceFallback, acquire(t, l, "trip", 0).Source)
		return len(e.states()) > 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, distributed.Open, e.states()[0])
}

func TestBreakerOpensProbesAndRamps(t *testing.T) {
	t.Parallel()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	var e events
	store := newStore(t, viaProxy(t, proxy), quick(&e)...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	remote(t, l, "alice", 1)

	proxy.Set(redistest.Fault{BlackHole: true})
	trip(t, l, &e)
	began := time.Now()
	for range 1000 {
		require.Equal(t, algo.SourceFallback, acquire(t, l, "alice", 0).Source)
	}
	require.Less(t, time.Since(began), 5*time.Second, "no call waits while the breaker is open")

	proxy.Set(redistest.Fault{})
	require.Eventually(t, func() bool {
		s := e.states()
		return s[len(s)-1] == distributed.Closed
	}, 20*time.Second, time.Millisecond)
	s := e.states()
	require.Equal(t, distributed.Ramping, s[len(s)-2])
	remote(t, l, "alice", 1)
}

// F2: while the breaker is open at most one call goes out in a probe interval.
func TestProbesAreFew(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	var e events
	store := newStore(t, viaProxy(t, proxy), quick(&e)...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	remote(t, l, "alice", 1)
	// A read-only server answers PING and every peek; only a write tells.
	server.Do("CONFIG", "SET", "maxmemory", "1")
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	require.Eventually(t, func() bool { acquire(t, l, "alice", 1); return len(e.states()) > 0 },
		10*time.Second, time.Millisecond)
	server.Do("CONFIG", "RESETSTAT")
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
	calls := evalCalls(server)
	require.LessOrEqual(t, calls, int(time.Since(began)/(100*time.Millisecond))+1)
	require.Positive(t, calls)
	require.Len(t, e.states(), 1, "it did not close: %v", e.states())

	server.Do("CONFIG", "SET", "maxmemory", "0")
	require.Eventually(t, func() bool { return acquire(t, l, "alice", 0).Source == algo.SourceRemote },
		20*time.Second, 10*time.Millisecond)
}

func evalCalls(s *redistest.Server) (n int) {
	for _, line := range strings.Split(fmt.Sprint(s.Do("INFO", "commandstats")), "\n") {
		var calls int
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,", &calls); err == nil {
			n += calls
		}
	}
	return n
}

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
			require.Contains(t, said[0], tc.says)
		})
	}
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
	require.LessOrEqual(t, acquire(t, l, "alice", 0).Remaining, int64(40), "what was replicated stays charged")
}

// F4: a server that says WRONGTYPE to everything is no server that is away.
func TestWrongTypeOpensNoBreaker(t *testing.T) {
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

// S2: no byte of a key begins a line in the log, whatever fails.
func TestHostileKeysStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	const evil = "evil\n\x1b[31mlevel=ERROR msg=forged"
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	var e events
	log := new(logged)
	store := newStore(t, viaProxy(t, proxy), distributed.WithInstances(1), distributed.WithHook(e.hook),
		distributed.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	remote(t, l, evil, 1)
	server.Do("DEL", distributed.RedisKey("sluice", "a", evil))
	server.Do("HSET", distributed.RedisKey("sluice", "a", evil), "field", "value")
	require.Equal(t, algo.SourceFallback, acquire(t, l, evil, 1).Source)
	proxy.Set(redistest.Fault{Refuse: true})
	require.Eventually(t, func() bool { acquire(t, l, evil, 1); return len(e.states()) > 0 }, 10*time.Second, time.Millisecond)
	text := log.text()
	require.Contains(t, text, "breaker")
	for line := range strings.Lines(text) {
		require.True(t, strings.HasPrefix(line, "time="), "%q", line)
	}
	require.NotContains(t, text, "\x1b")
}

// logged keeps what is logged.
type logged struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}
func (l *logged) text() string { l.mu.Lock(); defer l.mu.Unlock(); return l.all.String() }
