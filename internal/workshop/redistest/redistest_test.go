//go:build unix

package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

var ctx = context.Background()

func TestServer(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	require.NoError(t, c.Set(ctx, "k", "v", time.Minute).Err())
	s.Flush()
	require.ErrorIs(t, c.Get(ctx, "k").Err(), redis.Nil)

	quick := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: 50 * time.Millisecond, MaxRetries: -1})
	t.Cleanup(func() { _ = quick.Close() })
	s.Pause()
	require.Error(t, quick.Ping(ctx).Err())
	s.Resume()
	require.Eventually(t, func() bool { return quick.Ping(ctx).Err() == nil }, 5*time.Second, 10*time.Millisecond)

	s.Kill()
	require.Error(t, quick.Ping(ctx).Err())
	s.Restart()
	require.Eventually(t, func() bool { return quick.Ping(ctx).Err() == nil }, 5*time.Second, 10*time.Millisecond)
}

func TestReplicaIsReadOnly(t *testing.T) {
	r := redistest.StartReplica(t, redistest.Start(t))
	require.ErrorContains(t, r.Client().Set(ctx, "k", "v", time.Minute).Err(), "READONLY")
}

func TestClusterServesEverySlot(t *testing.T) {
	cluster := redistest.StartCluster(t)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		require.NoError(t, c.Set(ctx, key, "v", time.Minute).Err())
	}
}

func TestSentinelsReplaceADeadMaster(t *testing.T) {
	cases.Slow(t)
	s := redistest.StartSentinels(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs})
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Set(ctx, "k", "v", time.Minute).Err())
	s.Master.Kill()
	require.Eventually(t, func() bool { return c.Set(ctx, "k", "w", time.Minute).Err() == nil },
		20*time.Second, 50*time.Millisecond)
}

func TestProxyFaults(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s)
	c := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, ReadTimeout: time.Second, DialTimeout: time.Second,
		DialerRetries: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	for _, tc := range []struct {
		name  string
		fault redistest.Fault
		fails bool
		runs  int64 // how often the server executes one INCR
	}{
		{"none", redistest.Fault{}, false, 1},
		{"refuse", redistest.Fault{Refuse: true}, true, 0},
		{"reset", redistest.Fault{Reset: true}, true, 0},
		{"black hole", redistest.Fault{BlackHole: true}, true, 0},
		{"delay", redistest.Fault{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond}, false, 1},
		{"slice", redistest.Fault{Slice: true}, false, 1},
		{"lose", redistest.Fault{Command: "incr", Kth: 1, Lose: true}, true, 1},
		{"cut", redistest.Fault{Command: "incr", Kth: 1, Cut: true}, true, 1},
		{"half-close", redistest.Fault{Command: "incr", Kth: 1, HalfClose: true}, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.Flush()
			p.Set(tc.fault)
			err := c.Incr(ctx, "n").Err()
			require.Equal(t, tc.fails, err != nil, "%v", err)
			p.Set(redistest.Fault{})
			n, err := s.Client().Get(ctx, "n").Int64()
			if tc.runs == 0 {
				require.ErrorIs(t, err, redis.Nil)
			}
			require.Equal(t, tc.runs, n)
		})
	}
}

// The answer that the proxy gives comes in its place among the server's.
func TestProxyAnswersScripts(t *testing.T) {
	p := redistest.StartProxy(t, redistest.Start(t))
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	p.Set(redistest.Fault{Error: "LOADING not yet"})
	pipe := c.Pipeline()
	before := pipe.Incr(ctx, "n")
	script := pipe.Eval(ctx, "return redis.call('INCR', KEYS[1])", []string{"n"})
	after := pipe.Incr(ctx, "n")
	_, _ = pipe.Exec(ctx)
	require.ErrorContains(t, script.Err(), "LOADING not yet")
	require.Equal(t, []int64{1, 2}, []int64{before.Val(), after.Val()}, "the script has not run")
	p.Set(redistest.Fault{})
	require.Equal(t, int64(3), c.Eval(ctx, "return redis.call('INCR', KEYS[1])", []string{"n"}).Val())
}

// A fault without a number hits every reply to its command.
func TestProxyHitsEveryReply(t *testing.T) {
	p := redistest.StartProxy(t, redistest.Start(t))
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	p.Set(redistest.Fault{Command: "incr", HalfClose: true})
	for range 3 {
		require.Error(t, c.Incr(ctx, "n").Err())
	}
	require.Equal(t, 3, p.Hits())
	require.Equal(t, "3", c.Get(ctx, "n").Val())
}
