package distributed_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// F1: whatever Redis does, a decision comes within the timeout, or the
// context's deadline if that is sooner. Connections are pipes and time is virtual, so the
// load of the machine is not in it.
func TestF1_DecisionsKeepTheDeadline(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for name, dial := range map[string]func(*testing.T) (net.Conn, error){
		"refused": func(*testing.T) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"reset": func(*testing.T) (net.Conn, error) {
			near, far := net.Pipe()
			return near, far.Close()
		},
		"black hole": func(t *testing.T) (net.Conn, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		},
		"slow": func(*testing.T) (net.Conn, error) {
			time.Sleep(10 * time.Second)
			return nil, syscall.ETIMEDOUT
		},
	} {
		t.Run(name, func(t *testing.T) {
			distributed.FreshRequests(t)
			synctest.Test(t, func(t *testing.T) {
				c := redis.NewClient(&redis.Options{
					Addr:   "127.0.0.1:1", // no name to look up
					Dialer: func(context.Context, string, string) (net.Conn, error) { return dial(t) }, ReadTimeout: time.Second,
				})
				store := newStore(t, c, distributed.WithTimeout(timeout), distributed.WithInstances(1))
				l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
				for range 50 {
					began := time.Now()
					lease := acquire(t, l, "alice", 1)
					require.LessOrEqual(t, time.Since(began), timeout)
					require.Equal(t, algo.SourceFallback, lease.Source)
					require.True(t, lease.Allowed)
				}
				require.NoError(t, store.Close())
				require.NoError(t, c.Close())
				time.Sleep(5 * time.Minute) // go-redis dials on
			})
		})
	}
}

func TestF1_TheContextsDeadline(t *testing.T) {
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
