package remote

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A name that points to another server is followed by a caller alone too, when the client's connections
// may not be older, or idle for longer.
func TestCallerAloneFollowsTheClient(t *testing.T) {
	for name, o := range map[string]redis.Options{
		"lifetime": {ConnMaxLifetime: 100 * time.Millisecond}, "idle": {ConnMaxIdleTime: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := redistest.Start(t), redistest.Start(t)
			var addr atomic.Value
			addr.Store(before.Addr())
			o.Addr = before.Addr()
			o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
			}
			c := redis.NewClient(&o)
			t.Cleanup(func() { _ = c.Close() })
			client := New(GoRedis(c), Config{Timeout: time.Minute, ProbeInterval: time.Second}, quietHost{})
			t.Cleanup(func() { client.Stop(); client.Close() })
			for range 20 {
				charge(t, client, "k")
			}
			addr.Store(after.Addr())
			time.Sleep(2*o.ConnMaxLifetime + 2*o.ConnMaxIdleTime)
			charged := before.Do("GET", "k")
			for range 20 {
				charge(t, client, "k")
			}
			require.Equal(t, charged, before.Do("GET", "k"), "the old server is left")
		})
	}
}

// All connections have the client's name, and go through its OnConnect.
func TestCallerAloneIsNamed(t *testing.T) {
	server := redistest.Start(t)
	var connected atomic.Int64
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), ClientName: "checkout", OnConnect: func(ctx context.Context, c *redis.Conn) error {
		connected.Add(1)
		return c.ClientSetName(ctx, "checkout").Err()
	}})
	t.Cleanup(func() { _ = c.Close() })
	client := lone(t, c)
	charge(t, client, "k")
	list := server.Do("CLIENT", "LIST").(string)
	require.Equal(t, strings.Count(list, "\n")-1, strings.Count(list, "name=checkout"), "all but the one that asks: %s", list)
	require.EqualValues(t, strings.Count(list, "\n")-1, connected.Load())
}

// counter is a hook that counts commands, as those of traces and metrics do.
type counter struct{ dials, scripts atomic.Int64 }

func (h *counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		h.dials.Add(1)
		return next(ctx, network, addr)
	}
}

func (h *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			h.scripts.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (h *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The hooks of a client see every command and every dial.
func TestHooksSeeAll(t *testing.T) {
	server := redistest.Start(t)
	c := server.Client()
	var hook counter
	c.AddHook(&hook)
	client := New(GoRedis(c), Config{Timeout: time.Minute, ProbeInterval: time.Second}, quietHost{})
	t.Cleanup(func() { client.Stop(); client.Close() })
	for range 100 {
		charge(t, client, "k")
		time.Sleep(time.Millisecond)
	}
	require.GreaterOrEqual(t, hook.scripts.Load(), int64(100))
	list := server.Do("CLIENT", "LIST").(string)
	require.EqualValues(t, strings.Count(list, "\n")-1, hook.dials.Load(), "all but the one that asks: %s", list)
	require.True(t, hooked(c))
	require.False(t, hooked(redis.NewClient(&redis.Options{})), "go-redis keeps hooks otherwise: callers alone are slower")
}

// A server that is silent while a connection is opened does not delay the end of the client.
func TestCallerAloneOpensNothingAfterTheEnd(t *testing.T) {
	server := redistest.Start(t)
	c := server.Client()
	require.NoError(t, c.Ping(t.Context()).Err()) // a connection of the client
	client := New(GoRedis(c), Config{Timeout: time.Minute, ProbeInterval: time.Second}, quietHost{})
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	require.False(t, client.Do(ctx, NewRequest(counting, "k", Args{1})), "it opens a connection meanwhile")
	client.Stop()
	require.Eventually(t, func() bool {
		q := client.Node("k")
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.own.opening
	}, 20*time.Second, time.Millisecond)
	server.Resume()
	client.Close()
}

// A server that rejects the connection says why, whether one command is sent or several.
func TestRejectedConnections(t *testing.T) {
	o := redis.Options{Addr: redistest.Start(t).Addr(), Username: "nobody", Password: "wrong"}
	c := redis.NewClient(&o)
	t.Cleanup(func() { _ = c.Close() })
	for n := 1; n < 3; n++ {
		var cmds []*Command
		for range n {
			cmds = append(cmds, newCommands([]*Request{NewRequest(counting, "k", Args{1})}, true)...)
		}
		GoRedis(c).Do(t.Context(), cmds)
		for _, cmd := range cmds {
			require.ErrorContains(t, cmd.err, "WRONGPASS", n)
			require.Equal(t, Misconfigured, Classify(cmd.err))
		}
	}
}
