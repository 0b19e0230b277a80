package algo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// waitRows are the limiters that delay, at 10 units a second, with the units that
// may start at once: beside one request where its cost delays only later ones, or
// instead of it.
var waitRows = []struct {
	spec    string
	depth   time.Duration
	forward bool
}{
	{"10/s burst 3 wait 1s", 300 * time.Millisecond, false},
	{"pacer 10/s wait 1s", 100 * time.Millisecond, false},
	{"pacer 10/s slack 2 queue 10", 300 * time.Millisecond, false},
	{"nginx 10/s burst 9 delay 1", 200 * time.Millisecond, false},
	{"smooth-bursty 10/s burst 2 wait 1s", 200 * time.Millisecond, true},
	{"smooth-warming-up 10/s warmup 1s wait 1s", 0, true},
}

// waiter is an admission: kept units of cost, which start at an instant.
type waiter struct {
	lease      Lease
	start      int64
	cost, kept int64
}

// TestW2_WaitRefundsMintNothing: some admissions are settled and canceled after
// all later ones have started, and some decide on late readings of the clock. The
// units that are kept start within the bound.
func TestW2_WaitRefundsMintNothing(t *testing.T) {
	for _, row := range waitRows {
		t.Run(row.spec, func(t *testing.T) {
			n := cases.Count(1000, 50_000)
			synctest.Test(t, func(t *testing.T) {
				for trial := range n {
					queue := wait(of(row.spec)(), ticks(row.depth), row.forward, rand.New(rand.NewPCG(61, uint64(trial))))
					requireStarts(t, queue, ticks(row.depth), row.forward)
				}
			})
			t.Logf("W2: %d queues that charge, settle and cancel", n)
		})
	}
}

// wait returns the admissions to one queue.
func wait(l atReading, depth int64, forward bool, rnd *rand.Rand) (queue []waiter) {
	for range 40 {
		pause(rnd, time.Second)
		late := rnd.Int64N(3) / 2 * ticks(time.Duration(rnd.Int64N(int64(2*time.Second))))
		w := waiter{cost: 1 + rnd.Int64N(3)}
		if w.lease = at(l, l.clock().Now()-late, "", w.cost); w.lease.Allowed {
			w.start, w.kept = w.lease.handle.At, w.cost
			if w.lease.Delay > 0 && !forward {
				w.start = w.lease.handle.State[0] - depth
			}
			queue = append(queue, w)
		}
		for range rnd.IntN(4) {
			if i := rnd.IntN(len(queue) + 1); i < len(queue) && !waits(queue[i+1:], l.clock().Now()) {
				queue[i].correct(rnd)
			}
		}
	}
	return queue
}

// waits reports whether one of queue is yet to start.
func waits(queue []waiter, now int64) bool {
	return slices.ContainsFunc(queue, func(w waiter) bool { return w.lease.releaser != nil && w.start > now })
}

// correct settles or cancels.
func (w *waiter) correct(rnd *rand.Rand) {
	if rnd.IntN(2) == 0 {
		w.lease.Release(Canceled)
		w.kept = 0
		return
	}
	actual := rnd.Int64N(4)
	w.lease.Settle(actual)
	w.kept = min(w.kept, actual)
}

// requireStarts checks every run of starts, at 10 units a second.
func requireStarts(t *testing.T, queue []waiter, depth int64, forward bool) {
	t.Helper()
	unit := ticks(time.Second / 10)
	slices.SortFunc(queue, func(a, b waiter) int { return cmp.Compare(a.start, b.start) })
	for i, first := range queue {
		var sum, largest int64
		for _, w := range queue[i:] {
			if w.kept == 0 {
				continue
			}
			sum, largest = sum+w.kept*unit, max(largest, w.cost*unit)
			most := max(depth, largest)
			if forward {
				most = depth + largest
			}
			if sum > most+w.start-first.start {
				require.Failf(t, "too much starts", "%d ticks in %d: %+v", sum, w.start-first.start, queue)
			}
		}
	}
}
