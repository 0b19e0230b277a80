package adaptive_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// crew sends requests to a limiter at random instants, each in its own goroutine.
type crew struct {
	key     string
	class   adaptive.Class
	rate    float64 // requests a second
	takes   time.Duration
	waits   time.Duration // for its client
	outcome algo.Outcome

	sent, served int // in the second half
}

// work lets all crews send for d.
func work(t *testing.T, l *adaptive.Limiter, d time.Duration, crews ...*crew) {
	var all sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for i, c := range crews {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for time.Since(start) < d {
				time.Sleep(time.Duration(rng.ExpFloat64() / c.rate * float64(time.Second)))
				counted := time.Since(start) > d/2
				all.Go(func() {
					lease, err := l.Acquire(adaptive.WithClass(t.Context(), c.class), c.key, 1)
					if err != nil {
						panic(err)
					}
					mu.Lock()
					if counted {
						c.sent++
					}
					if counted && lease.Allowed {
						c.served++
					}
					mu.Unlock()
					if lease.Allowed {
						time.Sleep(c.takes)
						if c.waits > 0 {
							lease.AwaitClient(true)
							time.Sleep(c.waits)
						}
						lease.Release(c.outcome)
					}
				})
			}
		})
	}
	all.Wait()
}

func (c *crew) share() float64 { return float64(c.served) / float64(c.sent) }

var queues = map[string]adaptive.Queue{
	"FIFO 100": adaptive.FIFO(100, 100*time.Millisecond),
	"CoDel":    adaptive.CoDel(100, 0, 0),
	"CoDel 10": adaptive.CoDel(10, 0, 0),
}

// TestPrioritiesInAQueue: at twice the capacity of the slots, requests of a higher class are
// served first and evict those of a lower, and no slot stays free for them.
func TestPrioritiesInAQueue(t *testing.T) {
	t.Parallel()
	for name, queue := range queues {
		for _, slots := range []float64{8, 50} {
			synctest.Test(t, func(t *testing.T) {
				const ms10 = 10 * time.Millisecond
				l := newLimiter(t, adaptive.Fixed(int(slots)), adaptive.WithPriorities(), adaptive.WithQueue(queue))
				critical := &crew{class: adaptive.Critical, rate: 20 * slots, takes: ms10}
				sheddable := &crew{class: adaptive.Sheddable, rate: 180 * slots, takes: ms10}
				work(t, l, cases.Span(10*time.Second), critical, sheddable)
				require.Greater(t, critical.share(), .99, "%s, %v slots", name, slots)
				require.InDelta(t, 80/180., sheddable.share(), .03, "%s, %v slots", name, slots)
				require.Zero(t, l.InFlight())
			})
		}
	}
}

// TestSharesInAQueue: tenants within their shares are served first in a queue too. A short one
// may be full of such requests, those of the flood among them.
func TestSharesInAQueue(t *testing.T) {
	t.Parallel()
	for name, queue := range queues {
		synctest.Test(t, func(t *testing.T) {
			const ms10 = 10 * time.Millisecond
			l := newLimiter(t, adaptive.Fixed(40), adaptive.WithFairShares(nil), adaptive.WithQueue(queue))
			crews := []*crew{{key: "flood", rate: 20_000, takes: ms10}}
			for _, key := range []string{"a", "b", "c", "d"} { // half of a fifth each
				crews = append(crews, &crew{key: key, rate: 400, takes: ms10})
			}
			work(t, l, cases.Span(20*time.Second), crews...)
			least := map[string]float64{"CoDel 10": .8, "CoDel": .99, "FIFO 100": .99}[name]
			for _, c := range crews[1:] {
				require.Greater(t, c.share(), least, "%s, tenant %s", name, c.key)
			}
			require.Greater(t, crews[0].share(), .95*(4000-1600)/20_000, name)
		})
	}
}

// TestSharesOfWorkWithoutResult: work that fails, or whose client leaves, has used the service
// as long as any other.
func TestSharesOfWorkWithoutResult(t *testing.T) {
	t.Parallel()
	for _, outcome := range []algo.Outcome{algo.Succeeded, algo.Failed, algo.Succeeded | algo.Untimed, algo.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, gated(200), adaptive.WithFairShares(nil))
			crews := []*crew{{key: "flood", rate: 1000, takes: time.Second, outcome: outcome}}
			for _, key := range []string{"a", "b", "c", "d"} {
				crews = append(crews, &crew{key: key, rate: 2000, takes: 10 * time.Millisecond})
			}
			work(t, l, 20*time.Second, crews...)
			for _, c := range crews[1:] {
				require.Greater(t, c.share(), .95, "%v, tenant %s", outcome, c.key)
			}
		})
	}
}

// TestSharesOfStreams: the time that work waits for its client is not charged to its tenant.
func TestSharesOfStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, gated(40), adaptive.WithFairShares(nil))
		crews := []*crew{{key: "flood", rate: 20_000, takes: 10 * time.Millisecond}}
		for _, key := range []string{"a", "b", "c", "d"} {
			crews = append(crews, &crew{key: key, rate: 400, takes: 10 * time.Millisecond, waits: time.Second, outcome: algo.Succeeded | algo.Untimed})
		}
		work(t, l, 20*time.Second, crews...)
		for _, c := range crews[1:] {
			require.Greater(t, c.share(), .95, "tenant %s", c.key)
		}
	})
}

// TestEndlessWait: a wait that is longer than the clock counts is the longest that it counts.
func TestEndlessWait(t *testing.T) {
	for _, queue := range []adaptive.Queue{
		adaptive.FIFO(10, algo.Forever), adaptive.FIFO(10, 200*365*24*time.Hour), adaptive.CoDel(10, algo.Forever, algo.Forever),
	} {
		l := newLimiter(t, adaptive.Fixed(1), adaptive.WithQueue(queue))
		held := acquire(t, l, "", 1)
		time.AfterFunc(20*time.Millisecond, func() { held.Release(algo.Succeeded) })
		require.True(t, acquire(t, l, "", 1).Allowed)
	}
}

// faulty is a strategy whose limit panics while it is broken.
type faulty struct{ broken atomic.Bool }

func (f *faulty) Observe(adaptive.Sample) {}
func (f *faulty) Limit() int {
	if f.broken.Load() {
		panic("limit")
	}
	return 1
}

// TestG1_PanickingLimitKeepsTheQueue: a release that panics in the strategy's limit does not
// leave the queue locked.
func TestG1_PanickingLimitKeepsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(faulty)
		l := newLimiter(t, s, adaptive.WithQueue(adaptive.FIFO(10, time.Hour)))
		held := acquire(t, l, "", 1)
		var second algo.Lease
		go func() { second, _ = l.Acquire(context.Background(), "", 1) }()
		synctest.Wait()
		s.broken.Store(true)
		require.Panics(t, func() { held.Release(algo.Succeeded) })
		s.broken.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Acquire(ctx, "", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.True(t, second.Allowed, "the queue was served again")
	})
}
