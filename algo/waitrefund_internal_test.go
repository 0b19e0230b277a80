package algo

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// patient are the limiters that delay, with what may start at once beside one
// request (of SmoothBursty and SmoothWarmingUp) or instead of it.
var patient = map[string]struct {
	make    func() (atReading, clock)
	depth   time.Duration
	forward bool
}{
	"token bucket": {func() (atReading, clock) {
		l := Must(NewTokenBucket(PerSecond(10), Burst(3), MaxWait(time.Second)))
		return l, l.words.clock
	}, 300 * time.Millisecond, false},
	"pacer": {func() (atReading, clock) {
		l := Must(NewPacer(PerSecond(10), MaxWait(time.Second)))
		return l, l.words.clock
	}, 100 * time.Millisecond, false},
	"pacer with slack": {func() (atReading, clock) {
		l := Must(NewPacer(PerSecond(10), Slack(2), MaxQueue(10)))
		return l, l.words.clock
	}, 300 * time.Millisecond, false},
	"nginx": {func() (atReading, clock) {
		l := Must(NewNginx(PerSecond(10), Burst(9), DelayAfter(1)))
		return l, l.words.clock
	}, 200 * time.Millisecond, false},
	"smooth bursty": {func() (atReading, clock) {
		l := Must(NewSmoothBursty(PerSecond(10), Burst(2), MaxWait(time.Second)))
		return l, l.words.clock
	}, 200 * time.Millisecond, true},
	"warming up": {func() (atReading, clock) {
		w := Must(NewSmoothWarmingUp(PerSecond(10), time.Second, MaxWait(time.Second))).guava.(*warming)
		return w, w.cells.clock
	}, 0, true},
}

// waiter is an admission: kept units of cost, which start at an instant.
type waiter struct {
	lease      Lease
	start      int64
	cost, kept int64
}

// TestWaitRefundsMintNothing: some of what was admitted is settled and canceled
// once nothing admitted later waits any more, and some decide on late readings
// of the clock. What is kept starts within the bound.
func TestWaitRefundsMintNothing(t *testing.T) {
	for name, c := range patient {
		t.Run(name, func(t *testing.T) {
			n := cases.Count(1000, 50_000)
			synctest.Test(t, func(t *testing.T) {
				for trial := range n {
					l, clock := c.make()
					depth := toTicks(c.depth)
					line := wait(l, clock, depth, c.forward, rand.New(rand.NewPCG(61, uint64(trial))))
					requireStarts(t, line, depth, c.forward)
				}
			})
			t.Logf("W2: %d lines that charge, settle and cancel", n)
		})
	}
}

// wait returns what was admitted to one line.
func wait(l atReading, c clock, depth int64, forward bool, rnd *rand.Rand) (line []waiter) {
	for range 40 {
		time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(time.Second))))
		late := rnd.Int64N(3) / 2 * toTicks(time.Duration(rnd.Int64N(int64(2*time.Second))))
		w := waiter{cost: 1 + rnd.Int64N(3)}
		if l.acquireAt(&w.lease, c.now()-late, "", w.cost); w.lease.Allowed {
			w.start, w.kept = w.lease.handle.At, w.cost
			if w.lease.Delay > 0 && !forward {
				w.start = w.lease.handle.State[0] - depth
			}
			line = append(line, w)
		}
		for range rnd.IntN(4) {
			if i := rnd.IntN(len(line) + 1); i < len(line) && !waits(line[i+1:], c.now()) {
				line[i].correct(rnd)
			}
		}
	}
	return line
}

// waits reports whether one of line is yet to start.
func waits(line []waiter, now int64) bool {
	return slices.ContainsFunc(line, func(w waiter) bool { return w.lease.releaser != nil && w.start > now })
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
func requireStarts(t *testing.T, line []waiter, depth int64, forward bool) {
	t.Helper()
	unit := toTicks(time.Second / 10)
	slices.SortFunc(line, func(a, b waiter) int { return cmp.Compare(a.start, b.start) })
	for i, first := range line {
		var sum, largest int64
		for _, w := range line[i:] {
			if w.kept == 0 {
				continue
			}
			sum, largest = sum+w.kept*unit, max(largest, w.cost*unit)
			most := max(depth, largest)
			if forward {
				most = depth + largest
			}
			if sum > most+w.start-first.start {
				require.Failf(t, "too much starts", "%d ticks in %d: %+v", sum, w.start-first.start, line)
			}
		}
	}
}
