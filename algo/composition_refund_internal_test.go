package algo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/cases"
)

// slowLimiter admits everything after a while: what is charged behind it is
// charged later than what is charged before it.
type slowLimiter struct{ rnd *rand.Rand }

func (l slowLimiter) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	time.Sleep(time.Duration(l.rnd.Int64N(3) / 2 * l.rnd.Int64N(int64(time.Second))))
	return unlimited{}.Acquire(ctx, key, n)
}

// TestW4_CompositionRefunds: four goroutines charge several limits at once,
// in any order, for keys that fight for slots or the empty one; what one limit
// denies the others get back, and some is settled and canceled. What is kept
// stays within the bound of each limit.
func TestW4_CompositionRefunds(t *testing.T) {
	interleaved(t)
	n := cases.Count(300, 10_000)
	for trial := range n {
		synctest.Test(t, func(t *testing.T) {
			much := [3]int64{3, 3, 3}
			much[trial%3] = 1 // this one denies most
			c := &composed{
				bucket: Must(NewLeakyBucket(PerSecond(3*much[0]), Burst(3*much[0]), MaxKeys(2))),
				window: Must(NewSlidingWindow(PerSecond(4*much[1]), Cells(4), MaxKeys(2))),
				marker: must(NewRFC4115(PerSecond(3*much[2]), 3*much[2], PerSecond(1), 0, MaxKeys(2))).(*marker),
				keys:   trial / 3 % 2 * 24,
				calls:  map[string][]call{}, units: map[string][]admission{}, colors: map[string][]keptColor{},
			}
			c.run(uint64(trial))
			for key := range c.calls {
				requireWithin(t, c.bucket.limit.Load(), c.calls[key], key)
				requireAnywhere(t, key, c.units[key], toTicks(time.Second), 4*much[1])
				requireColors(t, &c.marker.marking, c.colors[key])
			}
		})
	}
	t.Logf("W4: %d crowds of 4 that charge, settle and cancel", n)
}

// composed are three limits and what they admitted, by key.
type composed struct {
	bucket *LeakyBucket
	window *SlidingWindow
	marker *marker
	keys   int
	mu     sync.Mutex
	calls  map[string][]call
	units  map[string][]admission
	colors map[string][]keptColor
}

func (c *composed) run(seed uint64) {
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 60 {
				c.charge(rnd)
				time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(100*time.Millisecond))))
			}
		})
	}
	group.Wait()
}

func (c *composed) charge(rnd *rand.Rand) {
	key, n := "", 1+rnd.Int64N(3)
	if c.keys > 0 {
		key = fmt.Sprint(rnd.IntN(c.keys))
	}
	limits := []Limiter{c.bucket, c.window, &coloring{c.marker, Green}, slowLimiter{rnd}}
	rnd.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	lease, err := All(limits...).Acquire(background, key, n)
	if err != nil || !lease.Allowed {
		return
	}
	leases := append([]Lease(nil), lease.releaser.(*compositeLease).leases...)
	lease.handle.N = n
	kept := correctAtRandom(&lease, rnd, []int64{0, 1, 2, 3})
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range leases {
		at := leases[i].handle.At
		switch limits[i].(type) {
		case *LeakyBucket:
			c.calls[key] = append(c.calls[key], call{at, kept})
		case *SlidingWindow:
			c.units[key] = append(c.units[key], admission{at, kept})
		case *coloring:
			c.colors[key] = append(c.colors[key], keptColor{at, kept, Green})
		}
	}
}
