package decide

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestW2_WindowBoundsUnderJumpingClocks: instants are those at which the
// decisions count: the reading, or a later one that the state had seen. One case
// is one sequence of 14 calls with readings that stand still, go on and go back.
func TestW2_WindowBoundsUnderJumpingClocks(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	for _, kind := range windowKinds {
		t.Run(kind.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(31, 32))
			for range n {
				w := kind.make(rnd, windowRate(rnd))
				clock := stepClock(jumpingClock(rnd, w.period/(1+rnd.Int64N(8))), w.step)
				requireWindow(t, w, admissions(rnd, w, clock), kind.anywhere(w.quota))
			}
			t.Logf("W2: %d sequences of calls to a window under jumping clocks", n)
		})
	}
}

func requireWindow(t *testing.T, w window, all []admission, anywhere int64) {
	t.Helper()
	for _, from := range all {
		var sum, inCell int64
		for _, a := range all {
			if a.at >= from.at && a.at-from.at < w.period {
				sum += a.n
			}
			if w.cell(a.at) == w.cell(from.at) {
				inCell += a.n
			}
		}
		if sum > anywhere || inCell > w.quota {
			t.Fatalf("%d in a window, %d in a cell; quota %d, period %d: %v",
				sum, inCell, w.quota, w.period, all)
		}
	}
}

// TestU2_WindowDecisionsAreExact: RetryAfter, NextAfter and ResetAfter are the
// first step, Remaining is the largest admitted cost, a denial changes nothing,
// and n at once is n times 1.
func TestU2_WindowDecisionsAreExact(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	for _, kind := range windowKinds {
		t.Run(kind.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(33, 34))
			for range n {
				w := kind.make(rnd, windowRate(rnd))
				clock := stepClock(jumpingClock(rnd, w.period/(1+rnd.Int64N(8))), w.step)
				admissions(rnd, w, clock)
				now := clock()
				_, at := w.clone().decide(now, 0)
				requireExact(t, w, max(now, at), 1+rnd.Int64N(w.quota))
			}
			t.Logf("U2: %d decisions of a window", n)
		})
	}
}

func requireExact(t *testing.T, w window, now, cost int64) {
	t.Helper()
	peek, _ := w.decide(now, 0)
	require.True(t, peek.Allowed)
	at := func(after, n int64) Verdict { // rounded up to a step, as callers do
		v, _ := w.clone().decide(now+(after+w.step-1)&^(w.step-1), n)
		return v
	}
	v := at(0, cost)
	require.Equal(t, cost <= peek.Remaining, v.Allowed)
	if !v.Allowed {
		require.False(t, v.Never)
		require.True(t, at(v.RetryAfter, cost).Allowed, "at %v", v.RetryAfter)
		require.False(t, at(v.RetryAfter-w.step, cost).Allowed, "a step before %v", v.RetryAfter)
		after, _ := w.decide(now, cost)
		require.Equal(t, v, after)
	}
	if peek.Remaining < w.quota {
		require.Equal(t, peek.Remaining, at(peek.NextAfter-w.step, 0).Remaining)
		require.Greater(t, at(peek.NextAfter, 0).Remaining, peek.Remaining)
		require.Less(t, at(peek.ResetAfter-w.step, 0).Remaining, w.quota)
		require.Equal(t, w.quota, at(peek.ResetAfter, 0).Remaining)
	} else {
		require.Zero(t, peek.NextAfter)
	}
	requireSum(t, w, now, peek.Remaining)
	v, _ = w.decide(now, w.quota+1)
	require.True(t, v.Never)
	require.Zero(t, v.RetryAfter)
}

// requireSum charges the remaining units at once and one by one.
func requireSum(t *testing.T, w window, now, left int64) {
	t.Helper()
	whole, split := w.clone(), w.clone()
	whole.decide(now, left)
	for range left {
		one, _ := split.decide(now, 1)
		require.True(t, one.Allowed)
	}
	a, _ := whole.decide(now, 0)
	b, _ := split.decide(now, 0)
	require.Equal(t, a, b)
	require.Zero(t, a.Remaining)
}

// TestW2_WindowsAgainstDefinitions compares the weight with the definition,
// counted over all admissions.
func TestW2_WindowsAgainstDefinitions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 36))
	for range cases.Count(20_000, 500_000) {
		r := windowRate(rnd)
		step := r.stepTicks()
		weighted, cells := must(NewSlidingCounters(r, step)), must(NewSlidingCells(r, anyCells(rnd, r), step))
		exact := must(NewSlidingLog(r))
		for _, c := range []struct {
			w    window
			used func(all []admission, now int64) int64
		}{
			{onCounters(weighted, step), func(all []admission, now int64) int64 {
				return weightedUse(weighted, all, now)
			}},
			{onCells(cells, r.Ticks(r.Period), step), func(all []admission, now int64) (sum int64) {
				for _, a := range all {
					if cells.number(a.at) >= cells.number(now)-cells.cells {
						sum += a.n
					}
				}
				return sum
			}},
			{onLog(exact), func(all []admission, now int64) (sum int64) {
				for _, a := range all {
					if a.at > now-r.Ticks(r.Period) {
						sum += a.n
					}
				}
				return sum
			}},
		} {
			requireUse(t, rnd, c.w, c.used)
		}
	}
}

func requireUse(t *testing.T, rnd *rand.Rand, w window, use func(all []admission, now int64) int64) {
	t.Helper()
	clock := stepClock(jumpingClock(rnd, w.period/(1+rnd.Int64N(8))), w.step)
	var all []admission
	for range 10 {
		now, n := clock(), rnd.Int64N(w.quota+1)
		v, at := w.decide(now, n)
		used := use(all, at)
		require.Equal(t, n == 0 || used+n <= w.quota, v.Allowed)
		if v.Allowed {
			all = append(all, admission{at, n})
			used += n
		}
		require.Equal(t, max(w.quota-used, 0), v.Remaining)
	}
}

// weightedUse is ceil(older * left / W) + newer, in wide arithmetic.
func weightedUse(p *SlidingCounters, all []admission, now int64) int64 {
	var older, newer int64
	for _, a := range all {
		switch p.number(now) - p.number(a.at) {
		case 0:
			newer += a.n
		case 1:
			older += a.n
		}
	}
	width := p.cell.by
	x := new(big.Int).Mul(big.NewInt(older), big.NewInt(p.begin(p.number(now)+1)-now))
	x.Add(x, big.NewInt(width-1)).Div(x, big.NewInt(width))
	return x.Int64() + newer
}

// TestWindowAdmitIsDecide: Admit answers as Decide, and leaves the same state.
func TestWindowAdmitIsDecide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(37, 38))
	for range cases.Count(5_000, 200_000) {
		r := windowRate(rnd)
		f := must(NewFixedWindow(r, 0, false))
		counters, cells := must(NewSlidingCounters(r, 0)), must(NewSlidingCells(r, anyCells(rnd, r), 0))
		log := must(NewSlidingLog(r))
		clock := stepClock(jumpingClock(rnd, r.Ticks(r.Period)/4+1), r.stepTicks())
		var words [2]int64
		var states [2]struct {
			counters, cells Counters
			log             Timestamps
		}
		for range 10 {
			now, n := clock(), rnd.Int64N(r.Count+2)
			var v Verdict
			var ok bool
			words[0], v = f.Decide(words[0], now, n)
			words[1], ok = f.Admit(words[1], now, n)
			require.Equal(t, v.Allowed, ok)
			_, v = counters.Decide(&states[0].counters, now, n)
			_, ok = counters.Admit(&states[1].counters, now, n)
			require.Equal(t, v.Allowed, ok)
			_, v = cells.Decide(&states[0].cells, now, n)
			_, ok = cells.Admit(&states[1].cells, now, n)
			require.Equal(t, v.Allowed, ok)
			_, v = log.Decide(&states[0].log, now, n)
			_, ok = log.Admit(&states[1].log, now, n)
			require.Equal(t, v.Allowed, ok)
			require.Equal(t, words[0], words[1])
		}
		require.Equal(t, states[0], states[1])
	}
}

// FuzzS3_Window: no input panics, and nothing is admitted beyond the quota.
func FuzzS3_Window(f *testing.F) {
	f.Add(int64(10), int64(time.Second), 0, int64(0), int64(1), int64(5), int64(7))
	f.Add(int64(1), int64(1), 1, int64(math.MaxInt64), int64(math.MaxInt64), int64(0), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(1e9), 1024, int64(math.MinInt64), int64(1e9), int64(1)<<61, int64(1))
	f.Add(int64(math.MaxInt64), int64(MaxSpan), 7, int64(-1), int64(1), int64(1)<<61, int64(1)<<60)
	f.Fuzz(func(t *testing.T, count, period int64, cells int, word, n, first, second int64) {
		r := per(count, time.Duration(period))
		if r.Validate() != nil || n < 0 || cells < 0 || cells > 1024 {
			return
		}
		first, second = year+first&(year-1), year+second&(year-1)
		all := []window{
			onWord(must(NewFixedWindow(r, word, false)), word, 0),
			onCounters(must(NewSlidingCounters(r, tick)), tick),
		}
		if p, err := NewSlidingCells(r, cells, tick); err == nil {
			all = append(all, onCells(p, r.Ticks(r.Period), tick))
		}
		if p, err := NewSlidingLog(r); err == nil {
			all = append(all, onLog(p))
		}
		for _, w := range all {
			var sum int64
			for _, now := range []int64{first, second, second} {
				v, at := w.decide(now, n)
				if v.Allowed && w.cell(at) == w.cell(second) {
					sum += n
				}
				require.LessOrEqual(t, sum, w.quota)
				require.GreaterOrEqual(t, v.Remaining, int64(0))
				require.LessOrEqual(t, v.Remaining, w.quota)
				for _, x := range spans(v) {
					require.GreaterOrEqual(t, x, int64(0))
				}
				require.GreaterOrEqual(t, v.ResetAfter, v.NextAfter)
			}
		}
	})
}
