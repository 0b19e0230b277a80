package adaptive_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// end is how a handler ends.
type end func(lease *algo.Lease)

// ends are all the ways in which a handler ends, with its release deferred.
var ends = []end{
	func(l *algo.Lease) { defer l.Release(algo.Succeeded) },
	func(l *algo.Lease) { defer l.Release(algo.Failed); panic("handler") },
	func(l *algo.Lease) { defer l.Release(algo.Failed); runtime.Goexit() },
	func(l *algo.Lease) { defer l.Release(algo.Canceled) },
	func(l *algo.Lease) { defer l.Release(algo.Succeeded | algo.Untimed); l.Settle(2) },
	func(l *algo.Lease) { defer l.Release(algo.Succeeded); defer l.Release(algo.Failed) },
}

// run runs one request in a goroutine of its own, as a server does.
func run(done *sync.WaitGroup, handler func()) {
	done.Go(func() {
		defer func() { _ = recover() }()
		handler()
	})
}

// TestC1_NothingLeaks: nothing is in flight at rest, after panics, exits, settles,
// cancellations and timeouts.
func TestC1_NothingLeaks(t *testing.T) {
	for name, opts := range map[string][]adaptive.Option{
		"plain":      nil,
		"queue":      {adaptive.WithQueue(adaptive.FIFO(50, time.Millisecond))},
		"codel":      {adaptive.WithQueue(adaptive.CoDel(50, 0, 0))},
		"priorities": {adaptive.WithPriorities()},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, gated(20), opts...)
			var done sync.WaitGroup
			for i := range cases.Count(10_000, 60_000) {
				run(&done, func() {
					ctx, cancel := context.WithCancel(background)
					defer cancel()
					if i%7 == 0 {
						cancel()
					}
					lease, err := l.Acquire(ctx, "k", 1+int64(i%3))
					if err != nil || !lease.Allowed {
						lease.Release(algo.Succeeded)
						return
					}
					ends[i%len(ends)](&lease)
				})
			}
			done.Wait()
			require.Zero(t, l.InFlight())
			require.Zero(t, l.Explain().Waiting)
			for i := range 21 { // Critical: others are still shed for a while
				lease, err := l.Acquire(adaptive.WithClass(background, adaptive.Critical), "", 1)
				require.Equal(t, i < 20, err == nil && lease.Allowed, "all slots are free")
			}
			require.NoError(t, l.Close())
		})
	}
}

// TestC1_NeverAboveTheLimit: neither the number of leases held nor InFlight ever
// exceeds the limit.
func TestC1_NeverAboveTheLimit(t *testing.T) {
	const limit = 7
	for name, opts := range map[string][]adaptive.Option{
		"plain": nil,
		"queue": {adaptive.WithQueue(adaptive.FIFO(20, 10*time.Millisecond))},
		"codel": {adaptive.WithQueue(adaptive.CoDel(20, time.Millisecond, 5*time.Millisecond))},
	} {
		t.Run(name, func(t *testing.T) {
			algotest.Interleave(t)
			l := newLimiter(t, adaptive.Fixed(limit), opts...)
			var held, most, passed atomic.Int64
			var done sync.WaitGroup
			for g := range 16 {
				done.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(g), 1))
					for range cases.Count(1000, 20_000) {
						n := 1 + rnd.Int64N(3)
						lease, _ := l.Acquire(background, "", n)
						if lease.Allowed {
							h := held.Add(n)
							raise(&most, h)
							passed.Add(1)
							runtime.Gosched()
							held.Add(-n)
						}
						lease.Release(algo.Succeeded)
						raise(&most, int64(l.InFlight()))
					}
				})
			}
			done.Wait()
			require.LessOrEqual(t, most.Load(), int64(limit))
			require.Positive(t, passed.Load())
			require.Zero(t, l.InFlight())
			t.Logf("%d admissions by 16 goroutines, at most %d of %d in flight", passed.Load(), most.Load(), limit)
			require.NoError(t, l.Close())
		})
	}
}

func raise(most *atomic.Int64, to int64) {
	for was := most.Load(); was < to && !most.CompareAndSwap(was, to); was = most.Load() {
	}
}

// rude is a strategy that panics on samples.
type rude struct{ adaptive.Strategy }

func (rude) Observe(adaptive.Sample) { panic("strategy") }

// TestC1_PanickingStrategyFreesTheSlot: the slot is free before the strategy runs.
func TestC1_PanickingStrategyFreesTheSlot(t *testing.T) {
	l := newLimiter(t, rude{adaptive.Fixed(3)}, adaptive.WithQueue(adaptive.FIFO(5, time.Second)))
	for range 100 {
		lease := acquire(t, l, "", 1)
		require.True(t, lease.Allowed)
		require.Panics(t, func() { lease.Release(algo.Succeeded) })
	}
	require.Zero(t, l.InFlight())
	require.NoError(t, l.Close())
}

// TestC1_PanickingSignalFreesTheSlot: a strategy reads its signal after an admission too.
func TestC1_PanickingSignalFreesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := false
		signal := signal.Func(func() (float64, bool) {
			if panics {
				panic("signal")
			}
			return 0, true
		})
		l := newLimiter(t, adaptive.Min(newBBR(signal), adaptive.Fixed(2)), adaptive.WithQueue(adaptive.FIFO(5, time.Second)))
		held := acquire(t, l, "", 1)
		panics = true
		for range 3 {
			time.Sleep(time.Second)
			require.Panics(t, func() { acquire(t, l, "", 1) })
		}
		require.Equal(t, 1, l.InFlight())
		panics = false
		held.Release(algo.Succeeded)
		require.Len(t, fill(t, l, 2), 2)
	})
}

// TestAllocations: admitting, denying and releasing allocate nothing.
func TestAllocations(t *testing.T) {
	for name, opts := range map[string][]adaptive.Option{
		"plain":      nil,
		"queue":      {adaptive.WithQueue(adaptive.FIFO(5, time.Second))},
		"priorities": {adaptive.WithPriorities()},
	} {
		t.Run(name, func(t *testing.T) {
			var l algo.Limiter = newLimiter(t, gated(1), opts...)
			require.Zero(t, testing.AllocsPerRun(100, func() {
				lease, _ := l.Acquire(background, "k", 1)
				lease.Release(algo.Succeeded)
			}))
			if name == "queue" {
				return // a request that waits allocates
			}
			held := acquire(t, l, "k", 1)
			require.Zero(t, testing.AllocsPerRun(100, func() {
				lease, _ := l.Acquire(background, "k", 1)
				lease.Release(algo.Succeeded)
			}))
			held.Release(algo.Succeeded)
		})
	}
}
