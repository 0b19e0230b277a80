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

// TestWarmingRefundsMintNothing: four goroutines charge, settle and cancel keys
// that fight for slots or the empty one, under every policy, while the rate
// changes, and some read the clock long before they decide. Nobody starts
// before what started earlier is paid for, as far as it was kept.
func TestWarmingRefundsMintNothing(t *testing.T) {
	interleaved(t)
	n := cases.Count(400, 10_000)
	for trial := range n {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewSmoothWarmingUp(PerSecond(10), time.Second, MaxKeys(2), OnFull(FullPolicy(trial%3))))
			for key, all := range warmed(l.guava.(*warming), uint64(trial)) {
				requirePaid(t, key, all)
			}
		})
	}
	t.Logf("W2: %d crowds of 4 that charge, settle and cancel", n)
}

// warmed returns what each key was admitted and has not given back.
func warmed(l *warming, seed uint64) map[string][]spent {
	var mu sync.Mutex
	all := map[string][]spent{}
	keys := int(seed%2) * 32
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(most)))) }
			for range 40 {
				key := ""
				if keys > 0 {
					key = fmt.Sprint(rnd.IntN(keys))
				}
				now, n := l.cells.clock.now(), 1+rnd.Int64N(3)
				pause(time.Second)
				var lease Lease
				l.acquireAt(&lease, now, key, n)
				if lease.Allowed && lease.Source != SourceOff {
					s := spent{lease.handle.At, lease.handle.State[0]}
					s.cost = share(s.cost, correctAtRandom(&lease, rnd, []int64{0, 1, 2, 3, 4}), n)
					mu.Lock()
					all[key] = append(all[key], s)
					mu.Unlock()
				}
				if seed%4 < 2 {
					_ = l.SetRate(PerSecond(10 + rnd.Int64N(10)))
				}
				pause(300 * time.Millisecond)
			}
		})
	}
	group.Wait()
	return all
}

// requirePaid looks at every window.
func requirePaid(t *testing.T, key string, all []spent) {
	t.Helper()
	all = slices.DeleteFunc(all, func(s spent) bool { return s.cost == 0 })
	slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(a.at, b.at) })
	for i, first := range all {
		var sum int64
		for _, s := range all[i:] {
			require.LessOrEqual(t, sum, s.at-first.at, "key %q: %v", key, all)
			sum += s.cost
		}
	}
}
