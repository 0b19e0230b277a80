package distributed_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

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

// A server that loses its scripts causes no error and no local decision.
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

// A server that refuses scripts with keys of several slots gets them one by
// one.
func TestServerThatRefusesSeveralSlots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	server.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(server.Do("CLUSTER", "INFO")), "cluster_state:ok")
	}, 10*time.Second, 10*time.Millisecond)
	store := newStore(t, server.Client()) // not a cluster client
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			lease, err := l.Acquire(ctx, fmt.Sprint("user", i%10), 1)
			if err == nil && lease.Allowed && lease.Source == algo.SourceRemote {
				admitted.Add(1)
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(100), admitted.Load())
}
