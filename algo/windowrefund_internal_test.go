package algo

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/cases"
)

// TestWindowRefundsMintNothing: four goroutines charge, settle and cancel one
// key while time passes. What is not given back stays within the bound.
func TestWindowRefundsMintNothing(t *testing.T) {
	for name, c := range fewSlots {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			for trial := range cases.Count(300, 10_000) {
				synctest.Test(t, func(t *testing.T) {
					l, _ := c.make()
					all := correct(l, uint64(trial))
					requireAnywhere(t, "", all, toTicks(time.Second), c.anywhere)
				})
			}
		})
	}
}

// correct returns what was admitted to the empty key and kept. A settlement
// that adds does not count as admitted; one that takes away leaves the rest.
func correct(l atReading, seed uint64) (all []admission) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 30 {
				n := 1 + rnd.Int64N(2)
				lease, _ := l.Acquire(background, "", n)
				if lease.Allowed {
					at := lease.handle.At
					kept := n
					for range rnd.IntN(4) {
						time.Sleep(time.Duration(rnd.Int64N(2) * rnd.Int64N(int64(time.Second/2))))
						actual := []int64{0, 1, 2, 3, 5, 1 << 40}[rnd.IntN(6)]
						lease.Settle(actual)
						kept = min(kept, actual)
					}
					if rnd.IntN(3) == 0 {
						lease.Release(Canceled)
						kept = 0
					}
					mu.Lock()
					all = append(all, admission{at, kept})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(time.Second))))
			}
		})
	}
	group.Wait()
	return all
}
