package distributed_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestDistance: a healthy Redis whose replies take three fifths of the timeout makes nearly
// all decisions, because no request waits for the round trip of another one.
func TestDistance(t *testing.T) {
	cases.Slow(t)
	const timeout = 200 * time.Millisecond
	proxy := redistest.StartProxy(t, redistest.Start(t))
	var e events
	store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(timeout), distributed.WithHook(e.hook), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1_000_000)))
	require.NoError(t, store.Ping(ctx))
	proxy.Set(redistest.Fault{Delay: timeout * 3 / 5})
	for range 10 { // until the distance is known; other tests may use the processors meanwhile
		_ = store.Ping(ctx)
	}
	var group sync.WaitGroup
	var local, total atomic.Int64
	for range 8 {
		group.Go(func() {
			for range max(cases.Count(20, 200), 10) {
				lease, _ := l.Acquire(ctx, "k", 1)
				total.Add(1)
				if lease.Source != algo.SourceRemote {
					local.Add(1)
				}
				time.Sleep(7 * time.Millisecond)
			}
		})
	}
	group.Wait()
	t.Logf("%d of %d decisions were local at %v of %v", local.Load(), total.Load(), store.Stats().RoundTrip, timeout)
	require.Less(t, local.Load(), total.Load()/4)
	require.GreaterOrEqual(t, store.Stats().RoundTripP99, timeout*3/5)
}

// TestFarAway: where replies take longer than the timeout, limits are local, and
// the log says so in plain words and again; the instances go on counting each
// other, and Ping reports it.
func TestFarAway(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	var e events
	log := new(textLog)
	store := newStore(t, viaProxy(t, proxy), append(quick(&e), distributed.WithTimeout(20*time.Millisecond), log.logger(), counted())...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	proxy.Set(redistest.Fault{Delay: 60 * time.Millisecond})
	require.Eventually(t, func() bool { acquire(t, l, "k", 1); return e.count(distributed.FarAway) > 0 }, 20*time.Second, time.Millisecond)
	require.Regexp(t, `answers take [0-9.]+ms, the timeout is 20ms: limits are local`, log.String())
	require.GreaterOrEqual(t, store.Stats().RoundTrip, 60*time.Millisecond)
	require.ErrorIs(t, store.Ping(ctx), distributed.ErrUnavailable)
	require.ErrorContains(t, store.Ping(ctx), "the timeout is 20ms")

	other := newStore(t, server.Client())
	ping := must[*distributed.Limiter](t)(other.TokenBucket("a", algo.PerHour(1000)))
	remote(t, ping, "k", 1)
	require.Eventually(t, func() bool { return store.Stats().Instances == 2 }, 20*time.Second, 10*time.Millisecond,
		"heartbeats have more patience than decisions")
}

// counted undoes WithInstances.
func counted() distributed.Option { return distributed.CountInstances }

// TestPing: it reports a server that is away, and the end of its context.
func TestPing(t *testing.T) {
	t.Parallel()
	store, server := onRedis(t)
	require.NoError(t, store.Ping(ctx))
	require.True(t, store.Stats().Counted)
	server.Pause()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, store.Ping(short), context.DeadlineExceeded)
	server.Resume()
	server.Kill()
	require.ErrorIs(t, store.Ping(ctx), distributed.ErrUnavailable)
	require.NoError(t, store.Close())
	require.ErrorIs(t, store.Ping(ctx), distributed.ErrClosed)
}

// TestProcessLate: a process without enough CPU sees replies too late. It says so, waits
// for them, and does not take Redis for away.
func TestProcessLate(t *testing.T) {
	cases.Slow(t)
	server := redistest.Start(t)
	var e events
	log := new(textLog)
	store := newStore(t, server.Client(), distributed.WithTimeout(20*time.Millisecond), distributed.WithInstances(1),
		distributed.WithHook(e.hook), log.logger())
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(1_000_000)))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 1).Source == algo.SourceRemote }, 10*time.Second, time.Millisecond)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 30 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					for range 100_000 { // of work
						runtime.KeepAlive(stop)
					}
				}
			}
		})
	}
	local, total := 0, 0
	long := time.Duration(max(cases.Count(4, 4), 2)) * time.Second
	for began := time.Now(); time.Since(began) < long || e.count(distributed.ProcessLate) == 0 && time.Since(began) < 5*long; {
		var callers sync.WaitGroup
		var locals atomic.Int64
		for range 10 {
			callers.Go(func() {
				lease, _ := l.Acquire(ctx, "k", 1)
				if lease.Source != algo.SourceRemote {
					locals.Add(1)
				}
			})
		}
		callers.Wait()
		local, total = local+int(locals.Load()), total+10
	}
	close(stop)
	group.Wait()
	t.Logf("%d of %d decisions were local", local, total)
	require.Less(t, local, total/2)
	require.Empty(t, e.states())
	require.Positive(t, e.count(distributed.ProcessLate))
	require.Contains(t, log.String(), "this process is late")
}

// Scripts that the server has lost are loaded although no caller can wait for two round trips.
func TestDistanceWithoutScripts(t *testing.T) {
	cases.Slow(t)
	const timeout = 200 * time.Millisecond
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, viaProxy(t, proxy), distributed.WithTimeout(timeout), distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.FixedWindow("a", algo.PerHour(1_000_000)))
	require.NoError(t, store.Ping(ctx))
	proxy.Set(redistest.Fault{Delay: timeout * 3 / 5})
	server.Do("SCRIPT", "FLUSH")
	remote := 0
	for start := time.Now(); time.Since(start) < 10*time.Second && remote < 50; {
		var group sync.WaitGroup
		var of atomic.Int64
		for range 8 {
			group.Go(func() {
				if lease, _ := l.Acquire(ctx, "k", 1); lease.Source == algo.SourceRemote {
					of.Add(1)
				}
			})
		}
		group.Wait()
		remote += int(of.Load())
		time.Sleep(10 * time.Millisecond)
	}
	require.GreaterOrEqual(t, remote, 50)
}
