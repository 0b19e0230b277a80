package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// hasty are options of an instance that notices an outage soon.
func hasty() []distributed.Option {
	return []distributed.Option{
		distributed.WithTimeout(20 * time.Millisecond), distributed.ProbeEvery(100 * time.Millisecond), distributed.WithInstances(1),
	}
}

// awake waits until the first decision of Redis: the connections are open.
func awake(t *testing.T, s *distributed.Store, l *distributed.Limiter) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Ping(ctx) == nil && remoteNow(t, l, "awake") >= 0 }, 10*time.Second, time.Millisecond)
}

// closedAgain waits until Redis makes all decisions.
func closedAgain(t *testing.T, s *distributed.Store) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Stats().Phase == distributed.PhaseClosed }, 10*time.Second, time.Millisecond)
}

// busy lets callers work until stop is called, which returns the sum of the work.
func busy(callers int, work func() int64) (stop func() int64) {
	var done atomic.Bool
	var units atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for !done.Load() {
				units.Add(work())
			}
		})
	}
	return func() int64 { done.Store(true); group.Wait(); return units.Load() }
}

// A server that stops for a moment loses no slot and no unit: what was charged to callers
// that had gone, and what was released meanwhile, is free within two probe intervals.
func TestCorrectionsSurviveStops(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{80 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(stall.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: 500 * time.Millisecond, PoolSize: 40})
			t.Cleanup(func() { _ = client.Close() })
			store := newStore(t, client, hasty()...)
			slots := must[*distributed.Limiter](t)(store.InFlight("slots", 20, 30*time.Second))
			year := algo.Per(1_000_000, 300*24*time.Hour)
			units := must[*distributed.Limiter](t)(store.TokenBucket("units", year))
			awake(t, store, slots)
			stop := busy(16, func() (spent int64) {
				lease := acquire(t, slots, "k", 1)
				unit := acquire(t, units, "k", 1)
				if unit.Allowed && unit.Source == algo.SourceRemote {
					spent = 1
				}
				time.Sleep(time.Millisecond)
				lease.Release(algo.Succeeded)
				return spent
			})
			time.Sleep(50 * time.Millisecond)
			server.Pause()
			time.Sleep(stall)
			server.Resume()
			time.Sleep(200 * time.Millisecond)
			spent := stop()
			closedAgain(t, store)
			require.Eventually(t, func() bool { return server.Do("ZCARD", "sluice:{k}:slots") == int64(0) }, patient, time.Millisecond,
				"slots that nobody holds")
			direct := must[*distributed.Limiter](t)(newStore(t, server.Client()).TokenBucket("units", year))
			lost, charged := int64(0), int64(0)
			if stall > 500*time.Millisecond { // the last replies may be lost with their connection
				lost = 16
			}
			require.Eventually(t, func() bool {
				charged = 1_000_000 - remote(t, direct, "k", 0).Remaining
				return charged <= spent+lost
			}, patient, time.Millisecond, "units that nobody has")
			require.GreaterOrEqual(t, charged, spent-3, "units that were given back twice") // a few have drained
		})
	}
}

// A server without memory frees the slots of the leases that end: a release needs none.
func TestCorrectionsPassOnAFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := newStore(t, server.Client(), append(hasty(), distributed.WithTimeout(patient))...)
	slots := must[*distributed.Limiter](t)(store.InFlight("slots", 50, 30*time.Second))
	units := must[*distributed.Limiter](t)(store.TokenBucket("units", algo.PerDay(100)))
	var leases []algo.Lease
	for range 50 {
		leases = append(leases, remote(t, slots, "k", 1))
	}
	spent := remote(t, units, "k", 40)
	server.Do("CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction")
	stop := busy(4, func() int64 { acquire(t, units, "other", 1); return 0 })
	defer stop()
	for _, l := range leases {
		l.Release(algo.Succeeded)
		time.Sleep(time.Millisecond)
	}
	spent.Release(algo.Canceled)
	require.Eventually(t, func() bool { return server.Do("ZCARD", "sluice:{k}:slots") == int64(0) }, patient, time.Millisecond)
	stop()
	server.Do("CONFIG", "SET", "maxmemory", "0")
	require.Eventually(t, func() bool { return remoteNow(t, units, "k") == 100 }, 5*time.Second, 10*time.Millisecond)
	require.Zero(t, store.Stats().Kept)
	require.Zero(t, store.Stats().Lost)
}

// remoteNow is the room of a key as Redis knows it, -1 while it is away.
func remoteNow(t *testing.T, l *distributed.Limiter, key string) int64 {
	if d := acquire(t, l, key, 0); d.Source == algo.SourceRemote {
		return d.Remaining
	}
	return -1
}

// A command that is executed after its callers have gone charges nothing, also where its
// reply is lost with the connection.
func TestOldCommandsChargeNothing(t *testing.T) {
	const timeout = 2 * time.Second
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: timeout, PoolSize: 40, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	store := newStore(t, client, append(hasty(), distributed.WithTimeout(timeout))...)
	units := must[*distributed.Limiter](t)(store.TokenBucket("units", algo.PerDay(1000)))
	awake(t, store, units)
	remote(t, units, "k", 1)
	server.Pause()
	for range 3 { // then the breaker is open
		require.Equal(t, algo.SourceFallback, acquire(t, units, "k", 100).Source)
	}
	time.Sleep(timeout * 5 / 4) // no connection waits for a reply any more
	server.Resume()
	closedAgain(t, store)
	require.Equal(t, int64(999), remoteNow(t, units, "k"))
}

// An admission whose reply is lost holds no slot.
func TestLostRepliesHoldNoSlots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, viaProxy(t, proxy), append(hasty(), distributed.WithTimeout(patient))...)
	slots := must[*distributed.Limiter](t)(store.InFlight("slots", 5, 30*time.Second))
	awake(t, store, slots)
	for i := range 3 {
		proxy.Set(redistest.Fault{Command: "evalsha", Kth: 1, Cut: true})
		require.Equal(t, algo.SourceFallback, acquire(t, slots, fmt.Sprint("k", i), 1).Source)
		proxy.Set(redistest.Fault{})
		require.Eventually(t, func() bool { return server.Do("EXISTS", fmt.Sprintf("sluice:{k%d}:slots", i)) == int64(0) }, patient, time.Millisecond)
		closedAgain(t, store)
	}
}
