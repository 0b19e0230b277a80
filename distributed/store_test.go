package distributed_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// S2: no byte of a key begins a line in the log, whatever fails.
func TestS2_HostileKeysStayOutOfTheLog(t *testing.T) {
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
	require.NotContains(t, text, "evil", "keys are not logged")
}

// logged keeps the log.
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

func TestG1_NewNeedsNoRedisAndStartsNothing(t *testing.T) {
	client := nowhere(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	began := time.Now()
	store, err := distributed.New(client)
	require.NoError(t, err)
	_, err = store.TokenBucket("a", algo.PerSecond(1))
	require.NoError(t, err)
	require.Less(t, time.Since(began), time.Second)
}

// G1: nothing outlives Close, whatever state Redis is in.
func TestG1_NothingOutlivesClose(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
	}{
		{"healthy", redistest.Fault{}},
		{"refused", redistest.Fault{Refuse: true}},
		{"black hole", redistest.Fault{BlackHole: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := redistest.StartProxy(t, redistest.Start(t))
			before := goleak.IgnoreCurrent()
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: 200 * time.Millisecond, DialerRetries: 1})
			proxy.Set(tc.fault)
			store, err := distributed.New(client, distributed.WithTimeout(20*time.Millisecond),
				distributed.ProbeEvery(30*time.Millisecond), distributed.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1000)))
			for range 20 {
				acquire(t, l, "k", 1)
			}
			require.NoError(t, store.Close())
			require.NoError(t, store.Close(), "twice is once")
			_, err = l.Acquire(ctx, "k", 1)
			require.ErrorIs(t, err, distributed.ErrClosed)
			require.ErrorIs(t, l.Reset(ctx, "k"), distributed.ErrClosed)
			_, err = store.TokenBucket("b", algo.PerSecond(1))
			require.ErrorIs(t, err, distributed.ErrClosed)
			proxy.Set(redistest.Fault{})
			require.NoError(t, client.Close())
			proxy.Wait()
			goleak.VerifyNone(t, before)
		})
	}
}
