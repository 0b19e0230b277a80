package algo_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// Four goroutines charge several limits at once, in any order, for keys that
// compete for slots or for the empty key. If one limit denies, the others get
// a refund; admissions are settled and canceled. The units that are never
// refunded stay within the bound of each limit.
func TestW4_CompositionRefunds(t *testing.T) {
	var points atomic.Uint64
	interleave.Hook = func() {
		if points.Add(1)%3 != 0 {
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
	n := cases.Count(300, 10_000)
	for trial := range n {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, trial)
			c.run(uint64(trial))
			for l, rate := range c.rates {
				require.NotEmpty(t, c.kept[l])
				for _, all := range c.kept[l] {
					requireBound(t, all, rate, l == c.window)
				}
			}
		})
	}
	t.Logf("W4: %d crowds of 4 that charge, settle and cancel", n)
}

// crowd is three limits and the admissions that they keep.
type crowd struct {
	limits []algo.Limiter
	rates  map[algo.Limiter]int64 // units a second; the burst is one second's
	window algo.Limiter
	keys   int
	mu     sync.Mutex
	kept   map[algo.Limiter]map[string][]admission
}

type admission struct {
	at time.Time
	n  int64
}

func newCrowd(t *testing.T, trial int) *crowd {
	many := [3]int64{9, 12, 9}
	many[trial%3] /= 3 // this one denies most
	marker, err := colors.NewRFC4115(algo.PerSecond(many[2]), many[2], algo.PerSecond(1), 0, algo.MaxKeys(2))
	require.NoError(t, err)
	bucket := algo.Must(algo.NewLeakyBucket(algo.PerSecond(many[0]), algo.Burst(many[0]), algo.MaxKeys(2)))
	window := algo.Must(algo.NewSlidingWindow(algo.PerSecond(many[1]), algo.Cells(4), algo.MaxKeys(2)))
	green := colors.Limit(marker, colors.Green)
	c := &crowd{
		limits: []algo.Limiter{bucket, window, green},
		rates:  map[algo.Limiter]int64{bucket: many[0], window: many[1], green: many[2]},
		window: window,
		keys:   trial / 3 % 2 * 24,
		kept:   map[algo.Limiter]map[string][]admission{},
	}
	for l := range c.rates {
		c.kept[l] = map[string][]admission{}
	}
	return c
}

func (c *crowd) run(seed uint64) {
	group(4, func(g int) {
		rnd := rand.New(rand.NewPCG(seed, uint64(g)))
		for range 60 {
			c.charge(rnd)
			time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(100*time.Millisecond))))
		}
	})
}

// charge acquires all limits, each behind a stopwatch.
func (c *crowd) charge(rnd *rand.Rand) {
	key, n := "", 1+rnd.Int64N(3)
	if c.keys > 0 {
		key = strconv.Itoa(rnd.IntN(c.keys))
	}
	limits := slices.Clone(c.limits)
	rnd.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	var reqs []algo.Request
	watches := make([]stopwatch, len(limits))
	for i, l := range limits {
		watches[i].rnd = rnd
		reqs = append(reqs, algo.Request{Limiter: &watches[i], N: n}, algo.Request{Limiter: l, Key: key, N: n})
	}
	lease, err := algo.AcquireAll(bg, reqs...)
	if err != nil || !lease.Allowed {
		return
	}
	kept := correct(&lease, n, rnd)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range limits {
		c.kept[l][key] = append(c.kept[l][key], admission{watches[i].at, kept})
	}
}

// stopwatch admits everything, sometimes after a while, and records when.
type stopwatch struct {
	rnd *rand.Rand
	at  time.Time
}

func (s *stopwatch) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	if n > 0 {
		time.Sleep(time.Duration(s.rnd.Int64N(3) / 2 * s.rnd.Int64N(int64(time.Second))))
		s.at = time.Now()
	}
	return algo.Unlimited().Acquire(ctx, key, n)
}

// correct settles and cancels a lease at random, and returns how many of its n
// units were kept all the time.
func correct(lease *algo.Lease, n int64, rnd *rand.Rand) int64 {
	kept := n
	for range rnd.IntN(6) {
		time.Sleep(time.Duration(rnd.Int64N(2) * rnd.Int64N(int64(time.Second/10))))
		actual := rnd.Int64N(4)
		lease.Settle(actual)
		kept = min(kept, actual)
	}
	if rnd.IntN(3) == 0 {
		lease.Release(algo.Canceled)
		return 0
	}
	return kept
}

// requireBound checks every window: one second's units within a second for a
// sliding window, and at most one second's units beyond the rate otherwise.
func requireBound(t *testing.T, all []admission, rate int64, window bool) {
	t.Helper()
	for _, from := range all {
		for _, to := range all {
			w := to.at.Sub(from.at)
			if w < 0 || window && w >= time.Second {
				continue
			}
			var sum int64
			for _, a := range all {
				if !a.at.Before(from.at) && !a.at.After(to.at) {
					sum += a.n
				}
			}
			most := rate * int64(time.Second)
			if !window {
				most += rate * int64(w)
			}
			require.LessOrEqual(t, sum*int64(time.Second), most, "%v: %v", w, all)
		}
	}
}
