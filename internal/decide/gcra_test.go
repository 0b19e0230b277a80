package decide

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// anyGCRA covers rates from 1 a day to 1e9 a second, bursts from 1 to as much
// as fits, and waits.
func anyGCRA(rnd *rand.Rand) *GCRA {
	for {
		g, err := NewGCRA(anyRate(rnd), 1+rnd.Int64N(1<<rnd.IntN(12)), time.Duration(rnd.Int64N(2)*rnd.Int64N(1e10)))
		if err == nil {
			return g
		}
	}
}

// TestW1_BoundUnderJumpingClocks: for any sequence of clock readings, no run of
// admissions holds more than burst + elapsed/T units, where elapsed is measured
// between the readings of its ends. One case is one sequence.
func TestW1_BoundUnderJumpingClocks(t *testing.T) {
	n := cases.Count(200_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(11, 12))
	for range n {
		g := anyGCRA(rnd)
		clock := jumpingClock(rnd, g.emission)
		var admitted []admission
		var tat int64
		for range 12 {
			now, cost := clock(), 1+rnd.Int64N(min(g.maxCost, 3))
			next, v := g.Decide(tat, now, cost)
			if v.Allowed {
				admitted = append(admitted, admission{now, cost})
			} else if next != tat {
				t.Fatalf("a denial changed the state: %+v, %d to %d", *g, tat, next)
			}
			tat = next
		}
		requireBound(t, g, admitted)
	}
	t.Logf("W1: %d sequences of 12 calls under jumping clocks", n)
}

func requireBound(t *testing.T, g *GCRA, admitted []admission) {
	for i := range admitted {
		var sum, last int64
		for _, a := range admitted[i:] {
			sum += a.n
			last = max(last, a.at)
			// sum*T <= depth + wait + elapsed, in exact integers
			if elapsed := max(last-admitted[i].at, 0); sum*g.emission > g.depth+g.maxWait+elapsed {
				t.Fatalf("%d units in %d ticks: %+v %v", sum, elapsed, *g, admitted)
			}
		}
	}
}

// TestW1_ClockGoingBackMintsNothing is the failure of golang.org/x/time/rate:
// alternating between an instant and one a millisecond earlier admitted 1000 of
// 1000 there.
func TestW1_ClockGoingBackMintsNothing(t *testing.T) {
	g := must(NewGCRA(per(10, time.Second), 10, 0))
	var tat, admitted int64
	for i := range int64(1000) {
		var ok bool
		if tat, ok = g.Admit(tat, ticks(time.Hour-time.Duration(i%2)*time.Millisecond), 1); ok {
			admitted++
		}
	}
	require.EqualValues(t, 10, admitted)
}

// TestU2_DecideAgainstArithmetic compares Decide and Admit with the definition
// computed in wide arithmetic.
func TestU2_DecideAgainstArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGCRA(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		now := rapid.Int64Range(0, 1<<61).Draw(t, "now")
		debt := rapid.Int64Range(0, g.maxDebt).Draw(t, "debt")
		n := rapid.Int64Range(0, g.maxCost+2).Draw(t, "n")
		tat := now + debt
		next, v := g.Decide(tat, now, n)

		fits := debt+n*g.emission <= g.depth+g.maxWait || n == 0
		require.Equal(t, fits, v.Allowed)
		left := max(g.depth-debt, 0) / g.emission
		if fits {
			require.Equal(t, tat+n*g.emission, next)
			left = max(g.depth-debt-n*g.emission, 0) / g.emission
		} else {
			require.Equal(t, tat, next)
		}
		require.Equal(t, left, v.Remaining)
		require.Equal(t, g.burst, v.Limit)
		require.Equal(t, next-now, v.ResetAfter)
		switch {
		case fits:
			require.Zero(t, v.RetryAfter)
			require.False(t, v.Never)
		case n > g.maxCost:
			require.Zero(t, v.RetryAfter)
			require.True(t, v.Never)
		default:
			_, ok := g.Decide(tat, now+v.RetryAfter, n)
			require.True(t, ok.Allowed, "at RetryAfter")
			_, early := g.Decide(tat, now+v.RetryAfter-1, n)
			require.False(t, early.Allowed, "a tick before")
		}
		short, ok := g.Admit(tat, now, n)
		require.Equal(t, v.Allowed && v.Delay == 0, ok)
		if ok {
			require.Equal(t, next, short)
		} else {
			require.Equal(t, tat, short)
		}
	})
}

// A cost whose ticks overflow to 0 is not free.
func TestU2_CostThatOverflows(t *testing.T) {
	g := must(NewGCRA(per(10, time.Second), 10, 0))
	n := int64(1) << (64 - bits.TrailingZeros64(uint64(g.emission)))
	require.Zero(t, n*g.emission)
	for _, n := range []int64{n, math.MaxInt64, g.maxCost + 1} {
		next, v := g.Decide(0, 0, n)
		require.False(t, v.Allowed)
		require.True(t, v.Never)
		require.Zero(t, next)
	}
}

// TestEndOfTheClock: a limiter that is older than its clock can count, 4.5
// years, denies requests that it cannot charge.
func TestEndOfTheClock(t *testing.T) {
	end := ticks(math.MaxInt64)
	const burst = 10
	for name, g := range map[string]*GCRA{
		"bucket": must(NewGCRA(per(10, time.Second), burst, 0)),
		"queue":  must(NewGCRA(per(10, time.Second), 1, 900*time.Millisecond)),
	} {
		for _, now := range []int64{end, end - ticks(time.Second/2), end - 1} {
			var tat, admitted int64
			for range 1000 {
				var v Verdict
				if tat, v = g.Decide(tat, now, 1); v.Allowed {
					admitted++
				}
			}
			require.LessOrEqual(t, admitted, int64(burst), "%s, %v before", name, end-now)
		}
	}
}

// TestImplausibleTATs: the debt of a slower limit is denied until it is
// clamped; after a change, until all debt of the old limit has drained, the
// bound is lower.
func TestImplausibleTATs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 16))
	for range cases.Count(20_000, 500_000) {
		g, now := anyGCRA(rnd), rnd.Int64N(1<<60)
		n := 1 + rnd.Int64N(g.maxCost)
		tat := now + g.maxDebt + 1 + rnd.Int64N(1<<60)
		require.False(t, g.Plausible(tat, now))
		same, ok := g.Admit(tat, now, n)
		require.False(t, ok)
		require.Equal(t, tat, same)
		clamped, cut := g.Clamp(tat, now)
		require.True(t, cut)
		require.Equal(t, now+g.maxDebt, clamped)
		require.True(t, g.Plausible(clamped, now))
		_, want := g.Decide(clamped, now, n)
		_, got := g.Decide(tat, now, n)
		require.Equal(t, want, got)

		old := anyGCRA(rnd)
		next := g.Succeed(old, now)
		if g.emission >= old.emission && g.burst <= old.burst {
			require.Equal(t, g, next, "neither faster nor larger: debt stays")
			continue
		}
		tat = now + min(tat-now, old.maxDebt)
		if tat > now+g.depth+g.maxWait {
			require.False(t, next.Plausible(tat, now))
			clamped, cut = next.Clamp(tat, now)
			require.True(t, cut)
			_, fits := next.Decide(clamped, now, 1)
			require.LessOrEqual(t, fits.RetryAfter, g.emission, "no longer than after spending the burst")
		}
		require.True(t, next.Plausible(now+g.depth+g.maxWait, now))
		require.True(t, next.Plausible(now+old.maxDebt+g.maxDebt, now+old.maxDebt), "the debt of old has drained")
	}
}

// FuzzS3_GCRA: no input panics or is admitted beyond the bucket.
func FuzzS3_GCRA(f *testing.F) {
	f.Add(int64(10), int64(1e9), int64(10), int64(0), int64(0), int64(0), int64(1))
	f.Add(int64(1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(1e9), int64(1), int64(1), int64(math.MinInt64), int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, count, period, burst, wait, tat, now, n int64) {
		for _, in := range []Resolution{Nanoseconds, Microseconds} {
			g, err := NewGCRA(Rate{count, time.Duration(period), in}, burst, time.Duration(wait))
			if err != nil || n < 0 || now < 0 {
				return
			}
			next, v := g.Decide(tat, now, n)
			if v.Allowed && n > 0 {
				require.LessOrEqual(t, n, g.maxCost)
				require.GreaterOrEqual(t, next, now)
				if now < 1<<62 {
					require.GreaterOrEqual(t, next, min(now+n*g.emission, math.MaxInt64))
				}
			}
			require.GreaterOrEqual(t, v.Remaining, int64(0))
			require.LessOrEqual(t, v.Remaining, g.burst)
			for _, x := range spans(v) {
				require.GreaterOrEqual(t, x, int64(0))
			}
		}
	})
}

func BenchmarkGCRA(b *testing.B) {
	g := must(NewGCRA(per(1e9, time.Second), 100, 0))
	b.Run("Admit", func(b *testing.B) {
		var tat int64
		for now := range int64(b.N) {
			tat, _ = g.Admit(tat, now*64, 1)
		}
	})
	b.Run("Decide", func(b *testing.B) {
		var tat int64
		for now := range int64(b.N) {
			tat, _ = g.Decide(tat, now*64, 1)
		}
	})
}
