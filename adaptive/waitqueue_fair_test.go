package adaptive_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// caller is a tenant whose clients send a request each, and the next one when that has ended.
type caller struct {
	key     string
	class   adaptive.Class
	clients int
	pause   time.Duration // between its requests

	longest atomic.Int64
	denied  atomic.Int64
	served  atomic.Int64
}

// closedLoop lets all clients send for d. A request takes work.
func closedLoop(t *testing.T, l *adaptive.Limiter, d, work time.Duration, callers ...*caller) {
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for _, c := range callers {
		ctx := adaptive.WithClass(t.Context(), c.class)
		for range c.clients {
			all.Go(func() {
				for time.Now().Before(end) {
					asked := time.Now()
					lease, err := l.Acquire(ctx, c.key, 1)
					if err != nil {
						panic(err)
					}
					waited := int64(time.Since(asked))
					for was := c.longest.Load(); waited > was && !c.longest.CompareAndSwap(was, waited); was = c.longest.Load() {
					}
					if !lease.Allowed {
						c.denied.Add(1)
						time.Sleep(work)
						continue
					}
					c.served.Add(1)
					time.Sleep(work)
					lease.Release(algo.Succeeded)
					time.Sleep(c.pause)
				}
			})
		}
	}
	all.Wait()
}

// TestNoRequestWaitsForLaterOnes: in every queue, with classes, shares or both, a request waits for those
// of its tenant that wait already, and of each other tenant for its share of these and one more.
func TestNoRequestWaitsForLaterOnes(t *testing.T) {
	t.Parallel()
	const slots, work, longest = 8, 20 * time.Millisecond, 5 * time.Second
	queues := map[string]struct {
		adaptive.Queue
		pause time.Duration // a queue of CoDel keeps the order if it becomes empty
	}{
		"FIFO":          {adaptive.FIFO(10_000, longest), 0},
		"FIFO, bursts":  {adaptive.FIFO(10_000, longest), 3 * time.Second},
		"CoDel, bursts": {adaptive.CoDel(10_000, longest, longest), 3 * time.Second},
	}
	weights := func(tenant string) float64 { return map[string]float64{"0": 2, "1": 1, "2": .5}[tenant] }
	orders := map[string][]adaptive.Option{
		"neither": nil, "priorities": {adaptive.WithPriorities()}, "shares": {adaptive.WithFairShares(nil)},
		"both": {adaptive.WithPriorities(), adaptive.WithFairShares(nil)}, "weights": {adaptive.WithFairShares(weights)},
	}
	for kind, queue := range queues {
		for name, order := range orders {
			for _, sizes := range [][]int{{20}, {300}, {20, 20}, {300, 10, 1}, {9, 20}, {16, 100}} {
				t.Run(fmt.Sprint(kind, " ", name, " ", sizes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l := newLimiter(t, adaptive.Fixed(slots), append(order, adaptive.WithQueue(queue.Queue))...)
						var callers []*caller
						for i, n := range sizes {
							callers = append(callers, &caller{key: fmt.Sprint(i), class: adaptive.Normal, clients: n, pause: queue.pause})
						}
						closedLoop(t, l, 30*time.Second, work, callers...)
						for i, c := range callers {
							before := c.clients
							for _, other := range callers {
								if other == c {
									continue
								}
								theirs, share := other.clients, 1.
								if name == "weights" {
									share = weights(other.key) / weights(c.key)
								}
								if order != nil && name != "priorities" {
									if most := int(float64(c.clients)*share) + 1; queue.pause == 0 || most < theirs {
										theirs = most
									}
								}
								before += theirs
							}
							bound := time.Duration(before/slots+1) * work
							require.Zero(t, c.denied.Load(), "tenant %d", i)
							require.LessOrEqual(t, time.Duration(c.longest.Load()), bound, "tenant %d", i)
						}
					})
				})
			}
		}
	}
}
