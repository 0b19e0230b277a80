package algotest

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

const inFlightLimit = 3

// RunInFlight checks a limiter of requests in flight. make returns a new one without a queue and with limit
// slots, 1 or more, for each key, or for all keys if its Description is Shared. A request of cost n takes n
// slots until its release.
func RunInFlight(t *testing.T, make func(limit int) (algo.Limiter, error)) {
	t.Helper()
	run := func(name string, check func(t *testing.T, l algo.Limiter)) bool {
		return t.Run(name, func(t *testing.T) {
			l, err := make(inFlightLimit)
			require.NoError(t, err)
			require.EqualValues(t, inFlightLimit, peek(t, l, "k").Limit, "Limit has to be the slots that it is made with, and not more than these")
			check(t, l)
			require.EqualValues(t, inFlightLimit, peek(t, l, "k").Remaining, "slots were lost, or there are more than before")
		})
	}
	_ = run("answers", slotAnswers) && run("64 goroutines", crowd)
}

// slotAnswers: the answers to random calls match the model, and About its unit.
func slotAnswers(t *testing.T, l algo.Limiter) {
	d := describe(t, l, algo.ConcurrentRequests)
	require.True(t, d.NeedsRelease || d == algo.Description{}, "About: NeedsRelease has to be true, because a lease holds slots")
	m := model{t: t, l: l, rnd: rand.New(rand.NewPCG(13, 14)), keys: modelKeys, slots: true}
	if d.Shared {
		m.keys = m.keys[:1]
	}
	m.run(1000)
}

// crowd: many callers never hold more slots than there are.
func crowd(t *testing.T, l algo.Limiter) {
	var all sync.WaitGroup
	var inFlight, most atomic.Int64
	for range 64 {
		all.Go(func() {
			for range 100 {
				lease, err := l.Acquire(ctx, "k", 1)
				if err == nil && lease.Allowed {
					if now := inFlight.Add(1); now > inFlightLimit {
						most.Store(now)
					}
					runtime.Gosched()
					inFlight.Add(-1)
				}
				lease.Release(algo.Succeeded)
			}
		})
	}
	all.Wait()
	require.Zero(t, most.Load(), "it is not safe for concurrent use: more requests in flight than its limit of %d", inFlightLimit)
}
