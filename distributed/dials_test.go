package distributed_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// F2: a server that refuses connections is dialed once in a probe interval, and decides again within two.
func TestF2_DialsAreFew(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, near *redis.Client, wire *redistest.Wire) {
		var dials atomic.Int64
		o := *near.Options()
		o.DialerRetries = 0 // as go-redis has it
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return near.Options().Dialer(ctx, network, addr)
		}
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close(); time.Sleep(2 * time.Second) }) // go-redis sleeps a second between its own
		store := newStore(t, c, distributed.WithInstances(1))
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
		remote(t, l, "k", 1)
		wire.Set(redistest.Fault{Refuse: true})
		require.Eventually(t, func() bool { acquire(t, l, "k", 1); return store.Stats().Phase == distributed.PhaseOpen }, time.Minute, time.Millisecond)
		time.Sleep(time.Second) // for the commands that have failed
		dials.Store(0)
		const seconds = 60
		for range seconds * 10 {
			acquire(t, l, "k", 1)
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%d dials in %d s", dials.Load(), seconds)
		require.LessOrEqual(t, dials.Load(), int64(seconds))
		require.GreaterOrEqual(t, dials.Load(), int64(seconds/2))
		wire.Set(redistest.Fault{})
		began := time.Now()
		require.Eventually(t, func() bool { return store.Stats().Phase == distributed.PhaseClosed }, time.Minute, time.Millisecond)
		require.Less(t, time.Since(began), 2500*time.Millisecond)
	})
}
