package remote

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// counting is a script that counts what is charged under a key.
var counting = NewScript("counting", func() string {
	return `local t = redis.call('TIME')
local all = {t[1] * 1000000 + t[2]}
for i, key in ipairs(KEYS) do all[i + 1] = redis.call('INCRBY', key, ARGV[i]) end
return all`
}, 1, 1)

// quietHost wants to know nothing.
type quietHost struct{ Host }

func (quietHost) Failed(Failure, error)      {}
func (quietHost) Changed(string, int, error) {}
func (quietHost) Parted() (bool, error)      { return false, nil }

// undone receives the requests whose charges are undone.
type undone chan int64

func (u undone) UndoCharge(r *Request) { u <- r.Reply[0] }

// lone is a client with an idle connection of its own.
func lone(t *testing.T, c *redis.Client) *Client {
	t.Helper()
	client := New(GoRedis(c), Config{Timeout: time.Minute, ProbeInterval: time.Second}, quietHost{})
	t.Cleanup(func() { client.Stop(); client.Close() })
	require.Eventually(t, func() bool {
		charge(t, client, "warm")
		q := client.Node("warm")
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.own.idle) > 0
	}, 10*time.Second, time.Millisecond)
	return client
}

func charge(t *testing.T, c *Client, key string) int64 {
	t.Helper()
	r := NewRequest(counting, key, Args{1})
	require.True(t, c.Do(t.Context(), r))
	defer r.Free()
	require.NoError(t, r.Err)
	return r.Reply[0]
}

// A caller alone takes no connection of the client, and gives the user and the database of it.
func TestCallerAlone(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "limits", "on", ">secret", "~*", "+@all")
	for _, o := range []redis.Options{{}, {DB: 3}, {Username: "limits", Password: "secret", DB: 1},
		{CredentialsProvider: func() (string, string) { return "limits", "secret" }}} {
		o.Addr = server.Addr()
		c := redis.NewClient(&o)
		defer func() { _ = c.Close() }()
		client := lone(t, c)
		before := c.PoolStats()
		for i := range 20 {
			require.Equal(t, int64(i+1), charge(t, client, fmt.Sprint("k", o.DB, o.Username, o.CredentialsProvider != nil)))
		}
		require.Equal(t, before.Hits+before.Misses, c.PoolStats().Hits+c.PoolStats().Misses)
		require.Equal(t, "20", c.Get(t.Context(), fmt.Sprint("k", o.DB, o.Username, o.CredentialsProvider != nil)).Val())
	}
}

// Few callers at once send their own commands too: none of them waits for a batch of the others.
func TestFewCallers(t *testing.T) {
	const few = 8
	c := redistest.Start(t).Client()
	client, pool := lone(t, c), func() uint32 { return c.PoolStats().Hits + c.PoolStats().Misses }
	sum := charge(t, client, "k") - 1
	require.Eventually(t, func() bool {
		before := pool()
		var callers sync.WaitGroup
		for range few {
			callers.Go(func() {
				for range 50 {
					charge(t, client, "k")
				}
			})
		}
		callers.Wait()
		sum += 50*few + 1
		require.Equal(t, sum+1, charge(t, client, "k"))
		return pool() == before
	}, 10*time.Second, time.Millisecond)
}

// A reply that is late for the caller is read, and its charge undone; the connection is used again.
func TestCallerAloneThatLeaves(t *testing.T) {
	server := redistest.Start(t)
	client := lone(t, server.Client())
	for i := range 3 {
		server.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		r, late := NewRequest(counting, "k", Args{5}), make(undone, 1)
		r.Undo = late
		time.AfterFunc(10*time.Millisecond, cancel)
		require.False(t, client.Do(ctx, r))
		server.Resume()
		require.Equal(t, int64(5*(i+1)), <-late)
		charge(t, client, "other")
	}
}

// A server that has lost its scripts, or has closed the connection, gets the command from the queue.
func TestCallerAloneIsSentOnce(t *testing.T) {
	server := redistest.Start(t)
	client := lone(t, server.Client())
	server.Do("SCRIPT", "FLUSH")
	require.Equal(t, int64(1), charge(t, client, "k"))
	server.Do("CLIENT", "KILL", "TYPE", "normal")
	time.Sleep(2 * trusted)
	require.Equal(t, int64(2), charge(t, client, "k"))
}

// Corrections leave before the requests that come after them.
func TestCallerAloneAfterCorrections(t *testing.T) {
	client := lone(t, redistest.Start(t).Client())
	for i := range 200 {
		client.Send(NewRequest(counting, "k", Args{1}))
		require.Equal(t, int64(2*(i+1)), charge(t, client, "k"))
	}
}

// A command is sent in the same words as by a transport, and a reply may come in pieces.
func TestAloneSpeaksTheProtocol(t *testing.T) {
	r := NewRequest(counting, "a key", Args{-7})
	c := &Command{script: counting, requests: []*Request{r}, deadline: "d17"}
	words, _ := c.Words()
	var want strings.Builder
	fmt.Fprintf(&want, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(w), w)
	}
	require.Equal(t, want.String(), string(appendWords(nil, c.words())))
	for reply, says := range map[string]string{
		"*3\r\n:1\r\n:-22\r\n:333\r\n": "", "*0\r\n": "", "-ERR no\r\n": "ERR no",
		"+OK\r\n": "unexpected reply", "*1\r\n$1\r\n": "unexpected reply", ":1\r\n": "unexpected reply",
	} {
		near, far := net.Pipe()
		go func() {
			for i := range len(reply) {
				_, _ = far.Write([]byte{reply[i]})
			}
		}()
		o := newAloneConn(near)
		err := o.read()
		if says == "" {
			require.NoError(t, err, reply)
			require.Len(t, o.reply, int(reply[1]-'0'))
		} else {
			require.ErrorContains(t, err, says, reply)
		}
		_, _ = near.Close(), far.Close()
	}
}

// A caller alone whose context ends does not wait for a server that is silent.
func TestCallerAloneIsInterrupted(t *testing.T) {
	server := redistest.Start(t)
	c := server.Client()
	client := lone(t, c)
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	require.False(t, client.Do(ctx, NewRequest(counting, "k", Args{1})))
	require.Less(t, time.Since(began), 30*time.Second) // of the minute that it may wait
}
