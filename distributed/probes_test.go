package distributed_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// restarted is a balancer in front of a server: what it had connected before a restart is silent for good.
type restarted struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func startRestarted(t *testing.T, target string) *restarted {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &restarted{Listener: l}
	t.Cleanup(func() { _ = l.Close(); r.restart() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, out)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _, _ = io.Copy(io.Discard, in); _ = in.Close() }()
			go func() { _, _ = io.Copy(in, out) }() // the client is not told of the end
		}
	}()
	return r
}

// restart forgets all connections.
func (r *restarted) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	r.conns = nil
}

// A pool of dead connections is renewed at once: Redis decides again within two probe
// intervals, and the time for which a late reply is awaited.
func TestF3_DeadConnectionsAreRenewed(t *testing.T) {
	t.Parallel()
	for _, pool := range []int{4, 20} {
		t.Run(fmt.Sprint(pool), func(t *testing.T) {
			t.Parallel()
			between := startRestarted(t, redistest.Start(t).Addr())
			client := redis.NewClient(&redis.Options{Addr: between.Addr().String(), PoolSize: pool, MinIdleConns: pool})
			t.Cleanup(func() { _ = client.Close() })
			store := newStore(t, client, hasty()...)
			l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1_000_000)))
			awake(t, store, l)
			require.Eventually(t, func() bool { return int(client.PoolStats().IdleConns) == pool }, 5*time.Second, time.Millisecond)
			between.restart()
			stop := busy(8, func() int64 { acquire(t, l, "k", 1); time.Sleep(time.Millisecond); return 0 })
			defer stop()
			began := time.Now()
			require.Eventually(t, func() bool { return store.Stats().Phase != distributed.PhaseClosed }, 5*time.Second, time.Millisecond)
			closedAgain(t, store)
			for time.Since(began) < 3*time.Second {
				if store.Stats().Phase != distributed.PhaseClosed {
					closedAgain(t, store)
					t.Logf("closed again after %v", time.Since(began))
				}
				time.Sleep(time.Millisecond)
				if time.Since(began) > 1500*time.Millisecond {
					break
				}
			}
			require.Less(t, time.Since(began), 2500*time.Millisecond, "silent connections are taken one after the other")
		})
	}
}
