package distributed_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// events keeps the events of a hook.
type events struct {
	mu  sync.Mutex
	all []distributed.Event
}

func (e *events) hook(ev distributed.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// states are the breaker's, in order.
func (e *events) states() (out []distributed.Phase) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range e.all {
		if ev.Kind == distributed.BreakerChanged {
			out = append(out, ev.Phase)
		}
	}
	return out
}

// virtually runs a test of faults in virtual time, on a real server: delays and timeouts do not
// depend on the load of the machine.
func virtually(t *testing.T, server *redistest.Server, test func(*testing.T, *redis.Client, *redistest.Wire)) {
	distributed.FreshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		c, wire := redistest.Wired(t, server)
		test(t, c, wire)
	})
}

const probeInterval = 100 * time.Millisecond

// quick are options for tests in which Redis fails at once, or time is virtual.
func quick(e *events) []distributed.Option {
	return []distributed.Option{
		distributed.WithTimeout(patient),
		distributed.ProbeEvery(probeInterval),
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
	}, time.Minute, time.Millisecond)
	require.Equal(t, distributed.PhaseOpen, e.states()[0])
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

// fleet is several instances on one server.
type fleet struct {
	limiters []*distributed.Limiter
	events   []*events
}

func startFleet(t *testing.T, n int, addr string, rate algo.Rate, opts ...distributed.Option) *fleet {
	f := new(fleet)
	for range n {
		c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patient, DialerRetries: 1, PoolSize: 4})
		t.Cleanup(func() { _ = c.Close() })
		e := new(events)
		all := append([]distributed.Option{
			distributed.WithTimeout(patient), distributed.ProbeEvery(probeInterval), distributed.WithHook(e.hook),
		}, opts...)
		l := must[*distributed.Limiter](t)(newStore(t, c, all...).TokenBucket("shared", rate))
		f.limiters, f.events = append(f.limiters, l), append(f.events, e)
	}
	return f
}

// settled waits until every instance knows of all: the parts add up.
func (f *fleet) settled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		ok := true
		for i, l := range f.limiters {
			acquire(t, l, "warm up", 0)
			ok = ok && distributed.Instances(l) == len(f.limiters) && len(f.events[i].states()) == 0
		}
		return ok
	}, 20*time.Second, 10*time.Millisecond)
}

var ctx = context.Background()

// patient is a timeout for tests that are not about timeouts: the machine may
// be busy.
const patient = 5 * time.Second

// newStore makes a store that is closed when the test ends. Of options of one name
// the last is used, so a test can override its helpers.
func newStore(t testing.TB, c redis.UniversalClient, opts ...distributed.Option) *distributed.Store {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	all := append([]distributed.Option{
		distributed.WithLogger(quiet), distributed.WithTimeout(patient), distributed.WithDenyCache(0),
	}, opts...)
	s, err := distributed.New(c, distributed.Last(all)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// onRedis makes a store on a server of its own.
func onRedis(t testing.TB, opts ...distributed.Option) (*distributed.Store, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	return newStore(t, server.Client(), opts...), server
}

func acquire(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease, err := l.Acquire(ctx, key, n)
	require.NoError(t, err)
	return lease
}

// remote acquires and insists that Redis decided.
func remote(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease := acquire(t, l, key, n)
	require.Equal(t, algo.SourceRemote, lease.Source, "%+v", lease.Decision)
	return lease
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// viaProxy makes a client with go-redis' defaults, which repeat failed
// commands.
func viaProxy(t testing.TB, p *redistest.Proxy) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func requireTTL(t *testing.T, s *redistest.Server) {
	t.Helper()
	for _, k := range s.Do("KEYS", "*").([]any) {
		require.NotEqual(t, int64(-1), s.Do("PTTL", k), "key %q has no TTL", k)
	}
}

// nowhere is a client of a server that does not exist.
func nowhere(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
