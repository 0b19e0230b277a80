package algotest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// rates are easy, indivisible, slow and fast ones.
var rates = []algo.Rate{
	algo.PerSecond(10), algo.PerSecond(7), algo.Per(3, 7*time.Second), algo.PerDay(5),
	algo.PerSecond(1_000_000), algo.Every(time.Minute), algo.Per(1000, time.Hour),
}

// start is an admission of n units that start at an instant.
type start struct {
	at time.Duration
	n  int64
}

// history records the admissions of one trial.
type history struct {
	epoch  time.Time
	starts []start
}

func (h *history) add(lease algo.Lease, n int64) {
	if lease.Allowed && n > 0 {
		h.starts = append(h.starts, start{time.Since(h.epoch) + lease.Delay, n})
	}
}

// check compares each window that begins and ends with a start to the bound.
func (h *history) check(t *testing.T, r algo.Rate, most func(algo.Rate, time.Duration) int64, words string) {
	t.Helper()
	for i, from := range h.starts {
		var sum int64
		for _, to := range h.starts[i:] {
			sum += to.n
			w := to.at - from.at
			require.LessOrEqual(t, sum, most(r, w), "%s: rate %v, window of %v: %v", words, r, w, h.starts)
		}
	}
}

// pause sleeps for at most three units or a quarter of the period.
func pause(rnd *rand.Rand, r algo.Rate) {
	unit := r.Period / time.Duration(r.Count)
	switch rnd.IntN(4) {
	case 0: // a burst: no pause
	case 1:
		time.Sleep(time.Duration(rnd.Int64N(int64(unit) + 1)))
	case 2:
		time.Sleep(time.Duration(rnd.Int64N(int64(3*unit) + 1)))
	case 3:
		time.Sleep(time.Duration(rnd.Int64N(int64(r.Period)/4 + 1)))
	}
}

// windowBound: no window of random arrivals holds more than the bound.
func windowBound(t *testing.T, s subject) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for trial := range Cases(200, 10_000) {
		r := rates[trial%len(rates)]
		l := s.new(t, r)
		h := history{epoch: time.Now()}
		for range 60 {
			n := 1 + rnd.Int64N(min(r.Count, 4))
			h.add(acquire(t, l, "k", n), n)
			pause(rnd, r)
		}
		h.check(t, r, s.bound.Units, "it admits more than Bound.Units")
	}
}

// windowBoundWithRefunds: admissions less their refunds keep the bound, for
// refunds at any time.
func windowBoundWithRefunds(t *testing.T, s subject) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for trial := range max(Cases(200, 10_000), 3*len(rates)) {
		r := rates[trial%len(rates)]
		l := s.new(t, r)
		h := history{epoch: time.Now()}
		type open struct {
			lease algo.Lease
			index int
		}
		var opens []open
		for range 60 {
			n := 1 + rnd.Int64N(min(r.Count, 4))
			lease := acquire(t, l, "k", n)
			h.add(lease, n)
			if lease.Allowed {
				opens = append(opens, open{lease, len(h.starts) - 1})
			}
			if len(opens) > 0 && rnd.IntN(2) == 0 {
				i := rnd.IntN(len(opens))
				o := opens[i]
				opens = append(opens[:i], opens[i+1:]...)
				if left := rnd.Int64N(h.starts[o.index].n + 1); left > 0 {
					o.lease.Settle(left)
					h.starts[o.index].n = left
				} else {
					o.lease.Release(algo.Canceled)
					h.starts[o.index].n = 0
				}
			}
			pause(rnd, r)
		}
		h.check(t, r, s.bound.Units, "a refund gave back what no longer weighs")
	}
}

// refundIdentity: charges that are refunded at once, in any order, leave the
// state unchanged.
func refundIdentity(t *testing.T, s subject) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for trial := range Cases(100, 10_000) {
		r := rates[trial%len(rates)]
		l := s.new(t, r)
		for range rnd.Int64N(3) {
			acquire(t, l, "k", 1)
		}
		pause(rnd, r)
		before := peek(t, l, "k")
		var leases []algo.Lease
		for range 1 + rnd.IntN(5) {
			leases = append(leases, acquire(t, l, "k", 1+rnd.Int64N(3)))
		}
		rnd.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
		for i := range leases {
			leases[i].Release(algo.Canceled)
		}
		require.Equal(t, before, peek(t, l, "k"), "rate %v", r)
	}
}

// conforming: single units that arrive evenly at the rate are never denied or
// delayed.
func conforming(t *testing.T, s subject) {
	if s.bound.Strict {
		return
	}
	for _, r := range rates {
		l := s.new(t, r)
		unit := (r.Period + time.Duration(r.Count) - 1) / time.Duration(r.Count)
		for i := range 3000 {
			lease := acquire(t, l, "k", 1)
			require.True(t, lease.Allowed, "rate %v, arrival %d", r, i)
			require.Zero(t, lease.Delay, "rate %v, arrival %d", r, i)
			time.Sleep(unit)
		}
	}
}

// retryAfter: a denied request succeeds after RetryAfter and not a nanosecond
// earlier.
func retryAfter(t *testing.T, s subject) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for trial := range Cases(500, 20_000) {
		r := rates[trial%len(rates)]
		l := s.new(t, r)
		for range rnd.IntN(3) {
			acquire(t, l, "k", 1+rnd.Int64N(min(r.Count, 4)))
			pause(rnd, r)
		}
		n := 1 + rnd.Int64N(min(r.Count, 4))
		if left := peek(t, l, "k").Remaining; left > 10 {
			acquire(t, l, "k", left-10)
		}
		var denied algo.Lease
		for denied = acquire(t, l, "k", n); denied.Allowed; denied = acquire(t, l, "k", n) {
		}
		if denied.Reason == algo.Never {
			continue
		}
		time.Sleep(denied.RetryAfter - 1)
		early := acquire(t, l, "k", n)
		require.False(t, early.Allowed, "rate %v, n %d: RetryAfter is too long: it is admitted a nanosecond before %v", r, n, denied.RetryAfter)
		require.Equal(t, time.Duration(1), early.RetryAfter, "rate %v, n %d: RetryAfter, a nanosecond before it is over", r, n)
		time.Sleep(time.Nanosecond)
		require.True(t, acquire(t, l, "k", n).Allowed, "rate %v, n %d: RetryAfter is too short: it is denied after %v", r, n, denied.RetryAfter)
	}
}

// manyGoroutines: 512 goroutines together get no more than a single one.
func manyGoroutines(t *testing.T, s subject) {
	r := algo.PerHour(100)
	for _, key := range []string{"", "k"} {
		l := s.new(t, r)
		began := time.Now()
		var admitted atomic.Int64
		var group sync.WaitGroup
		for range 512 {
			group.Go(func() {
				for range 4 {
					lease, err := l.Acquire(ctx, key, 1)
					if err == nil && lease.Allowed && lease.Delay == 0 {
						admitted.Add(1)
					}
				}
			})
		}
		group.Wait()
		most := s.bound.Units(r, time.Since(began))
		require.LessOrEqual(t, admitted.Load(), most, "it is not safe for concurrent use: 512 goroutines get more of the key %q than one", key)
		require.Positive(t, admitted.Load())
	}
}

// waiting: Wait sleeps until the units are available, fails at once if the
// context ends earlier, and charges nothing if it fails.
func waiting(t *testing.T, s subject) {
	l := s.new(t, algo.PerSecond(2))
	drain(t, l, "k")
	need := acquire(t, l, "k", 1)
	need.Release(algo.Canceled)
	due := need.RetryAfter + need.Delay

	short, cancel := contextWithTimeout(due - 1)
	defer cancel()
	began := time.Now()
	before := peek(t, l, "k")
	_, err := algo.Wait(short, l, "k", 1)
	require.ErrorIs(t, err, algo.ErrWait)
	require.Zero(t, time.Since(began), "it failed at once")
	require.Equal(t, before, peek(t, l, "k"))

	lease, err := algo.Wait(ctx, l, "k", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	require.Equal(t, due, time.Since(began))
	if !s.bound.PayForward {
		_, err = algo.Wait(ctx, l, "k", 1<<40)
		require.ErrorIs(t, err, algo.ErrCost)
	}
}
