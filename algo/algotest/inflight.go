package algotest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// RunInFlight checks a limiter of requests in flight. make returns a new one with limit slots, 1
// or more, for each key, and without a queue. Each request takes one slot until its release.
func RunInFlight(t *testing.T, make func(limit int) (algo.Limiter, error)) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, l algo.Limiter){
		"limit": slots, "denied lease": deniedLease, "second release": secondRelease, "look": looksAtSlots, "64 goroutines": crowd,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := make(inFlightLimit)
			require.NoError(t, err)
			run(t, l)
			require.Len(t, fillSlots(t, l), inFlightLimit, "slots were lost, or there are more than before")
		})
	}
}

const inFlightLimit = 3

// fillSlots takes all slots of l.
func fillSlots(t *testing.T, l algo.Limiter) (held []algo.Lease) {
	t.Helper()
	for range 2 * inFlightLimit {
		if lease := acquire(t, l, "k", 1); lease.Allowed {
			held = append(held, lease)
		}
	}
	return held
}

func releaseSlots(held []algo.Lease, o algo.Outcome) {
	for i := range held {
		held[i].Release(o)
	}
}

// slots: any outcome frees the slot, and a denial has a reason and a wait.
func slots(t *testing.T, l algo.Limiter) {
	for _, o := range []algo.Outcome{algo.Succeeded, algo.Failed, algo.Canceled, algo.Succeeded | algo.Untimed} {
		held := fillSlots(t, l)
		require.Len(t, held, inFlightLimit, "after the outcome before %v", o)
		denied := acquire(t, l, "k", 1)
		require.NotEqual(t, algo.Admitted, denied.Reason)
		require.Positive(t, denied.RetryAfter)
		releaseSlots(held, o)
	}
}

// deniedLease: adapters release each lease, denied ones too.
func deniedLease(t *testing.T, l algo.Limiter) {
	held := fillSlots(t, l)
	for range 10 {
		denied := acquire(t, l, "k", 1)
		denied.Release(algo.Canceled)
	}
	require.False(t, acquire(t, l, "k", 1).Allowed,
		"the release of a denied lease freed a slot: make the lease of a denial with NewLease, or fill in Allowed before FillLease")
	releaseSlots(held, algo.Succeeded)
}

// secondRelease: a lease frees its slot once.
func secondRelease(t *testing.T, l algo.Limiter) {
	held := fillSlots(t, l)
	releaseSlots(held[:1], algo.Succeeded)
	releaseSlots(held[:1], algo.Succeeded)
	releaseSlots(held[1:], algo.Succeeded)
}

// looksAtSlots: a cost of 0 is admitted and takes no slot.
func looksAtSlots(t *testing.T, l algo.Limiter) {
	for range 2 * inFlightLimit {
		lease := acquire(t, l, "k", 0)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
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
					inFlight.Add(-1)
				}
				lease.Release(algo.Succeeded)
			}
		})
	}
	all.Wait()
	require.Zero(t, most.Load(), "requests in flight under a limit of %d", inFlightLimit)
}
