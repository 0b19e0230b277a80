package algo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// prompt are the buckets that never delay, with room for few keys.
var prompt = map[string]func(FullPolicy) *bucket{
	"leaky bucket": func(p FullPolicy) *bucket {
		return &Must(NewLeakyBucket(PerSecond(10), Burst(3), MaxKeys(2), OnFull(p))).bucket
	},
	"pacer": func(p FullPolicy) *bucket {
		return &Must(NewPacer(PerSecond(10), Slack(2), MaxQueue(0), MaxKeys(2), OnFull(p))).bucket
	},
	"nginx": func(p FullPolicy) *bucket {
		return &Must(NewNginx(PerSecond(10), Burst(2), NoDelay(), MaxKeys(2), OnFull(p))).bucket
	},
	"smooth bursty": func(p FullPolicy) *bucket {
		return &Must(NewSmoothBursty(PerSecond(10), Burst(2), MaxKeys(2), OnFull(p))).bucket
	},
	"strict": func(p FullPolicy) *bucket {
		return &Must(NewStrict(PerSecond(10), Burst(3), MaxKeys(2), OnFull(p))).bucket
	},
}

// TestShapeRefundsMintNothing: four goroutines charge, settle and cancel keys
// that fight for slots or the empty one, under every policy, and some read the
// clock long before they decide. Meanwhile the rate changes, and snapshots are
// restored. What is not given back stays within the bound, as time: a unit
// costs what it did at the rate that it was admitted under.
func TestShapeRefundsMintNothing(t *testing.T) {
	for name, make := range prompt {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(150, 5_000)
			for trial := range n {
				synctest.Test(t, func(t *testing.T) {
					b := make(FullPolicy(trial % 3))
					r := &bucketCrowd{b: b, depth: b.limit.Load().depth, all: map[string][]spent{}}
					r.run(uint64(trial))
					r.check(t)
				})
			}
			t.Logf("W1, W2: %d crowds of 4 that charge, settle and cancel", n)
		})
	}
}

// spent is what an admission keeps: cost ticks from an instant on.
type spent struct{ at, cost int64 }

// bucketCrowd is a bucket that never delays, in use.
type bucketCrowd struct {
	b      *bucket
	depth  int64 // the largest
	keys   int
	actual []int64 // what costs turn out to be
	mu     sync.Mutex
	all    map[string][]spent
}

func (r *bucketCrowd) run(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 4))
	r.keys = rnd.IntN(2) * 24
	r.actual = []int64{0, 1, 2, 3}
	if rnd.IntN(2) == 0 { // more is cut off, and ends what earlier charges weigh
		r.actual = append(r.actual, 5, 9)
	}
	change, restore := rnd.IntN(2) == 0, rnd.IntN(2) == 0
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() { r.charge(rand.New(rand.NewPCG(seed, uint64(g)))) })
	}
	for i := range 150 {
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second / 10))))
		if change { // not so far that a debt is cut off below what fits at the other
			_ = r.b.SetRate(PerSecond([]int64{18, 10}[i%2]))
		}
		if restore {
			data := r.b.Snapshot(slices.Values([]string{"1", "2", "3"}))
			time.Sleep(time.Duration(rnd.Int64N(int64(time.Second / 10))))
			_ = r.b.Restore(data)
		}
	}
	group.Wait()
}

// charge is what one of the crowd does.
func (r *bucketCrowd) charge(rnd *rand.Rand) {
	pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(most)))) }
	for range 40 {
		key := ""
		if r.keys > 0 {
			key = fmt.Sprint(rnd.IntN(r.keys))
		}
		now := r.b.words.clock.now()
		pause(time.Second)
		n := 1 + rnd.Int64N(3)
		if lease := at(r.b, now, key, n); lease.Allowed && lease.Source != SourceOff {
			s := spent{lease.handle.At, n * lease.handle.State[2]}
			s.cost -= (n - correctAtRandom(&lease, rnd, r.actual)) * lease.handle.State[2]
			r.mu.Lock()
			r.all[key] = append(r.all[key], s)
			r.mu.Unlock()
		}
		pause(300 * time.Millisecond)
	}
}

// correctAtRandom settles and cancels a lease, and returns how many of its
// units were kept all the time.
func correctAtRandom(lease *Lease, rnd *rand.Rand, actual []int64) (kept int64) {
	kept = lease.handle.N
	for range rnd.IntN(6) {
		time.Sleep(time.Duration(rnd.Int64N(2) * rnd.Int64N(int64(time.Second/10))))
		n := actual[rnd.IntN(len(actual))]
		lease.Settle(n)
		kept = min(kept, n)
	}
	if rnd.IntN(3) == 0 {
		lease.Release(Canceled)
		return 0
	}
	return kept
}

// check looks at every window. What pays forward may add its own cost.
func (r *bucketCrowd) check(t *testing.T) {
	t.Helper()
	for key, all := range r.all {
		slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(a.at, b.at) })
		for i, first := range all {
			var sum, largest int64
			for _, s := range all[i:] {
				sum, largest = sum+s.cost, max(largest, s.cost)
				most := r.depth + s.at - first.at
				if r.b.limit.Load().forward {
					most += largest
				}
				require.LessOrEqual(t, sum, most, "key %q: %v", key, all)
			}
		}
	}
}
