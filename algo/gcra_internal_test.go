package algo

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/cases"
)

func mustGCRA(t require.TestingT, r Rate, burst int64, wait time.Duration) *gcra {
	g, err := newGCRA(r, burst, wait)
	require.NoError(t, err)
	return g
}

// randomGCRA covers rates from 1 a day to 1e9 a second, bursts from 1 to as
// much as fits, and waits.
func randomGCRA(rnd *rand.Rand) *gcra {
	for {
		r := Rate{1 + rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(46))))}
		g, err := newGCRA(r, 1+rnd.Int64N(1<<rnd.IntN(12)), time.Duration(rnd.Int64N(2)*rnd.Int64N(1e10)))
		if err == nil {
			return g
		}
	}
}

// jumpingClock returns readings that go on, stand still, and go back.
func jumpingClock(rnd *rand.Rand, unit int64) func() int64 {
	now := 1 << 40 * rnd.Int64N(1000)
	return func() int64 {
		switch rnd.IntN(6) {
		case 0:
			now += rnd.Int64N(unit + 1)
		case 1:
			now += rnd.Int64N(8*unit + 1)
		case 2:
			now = max(now-rnd.Int64N(8*unit+1), 0)
		case 3:
			return max(now-rnd.Int64N(4*unit+1), 0) // one late reading
		}
		return now
	}
}

// TestBoundUnderJumpingClocks is promise W1: for any sequence of clock
// readings, no run of admissions holds more than burst + elapsed/T units, where
// elapsed is measured between the readings of its ends. One case is one
// sequence.
func TestBoundUnderJumpingClocks(t *testing.T) {
	n := cases.Count(200_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(11, 12))
	for range n {
		g := randomGCRA(rnd)
		clock := jumpingClock(rnd, g.emission)
		type admission struct{ now, n int64 }
		var admitted []admission
		var tat int64
		for range 12 {
			now, cost := clock(), 1+rnd.Int64N(min(g.most, 3))
			next, over := g.charge(tat, now, cost)
			if over <= g.wait {
				admitted = append(admitted, admission{now, cost})
			} else {
				if next != tat {
					t.Fatalf("a denial changed the state: %+v, %d to %d", *g, tat, next)
				}
			}
			tat = next
		}
		for i := range admitted {
			var sum, last int64
			for _, a := range admitted[i:] {
				sum += a.n
				last = max(last, a.now)
				// sum*T <= depth + wait + elapsed, in exact integers
				if elapsed := max(last-admitted[i].now, 0); sum*g.emission > g.depth+g.wait+elapsed {
					t.Fatalf("%d units in %d ticks: %+v %v", sum, elapsed, *g, admitted)
				}
			}
		}
	}
	t.Logf("W1: %d sequences of 12 calls under jumping clocks", n)
}

// TestClockGoingBackMintsNothing is the failure of golang.org/x/time/rate:
// alternating between an instant and one a millisecond earlier admitted 1000
// of 1000 there.
func TestClockGoingBackMintsNothing(t *testing.T) {
	g := mustGCRA(t, PerSecond(10), 10, 0)
	var tat, admitted int64
	for i := range int64(1000) {
		next, over := g.charge(tat, toTicks(time.Hour-time.Duration(i%2)*time.Millisecond), 1)
		if over <= 0 {
			admitted++
		}
		tat = next
	}
	require.EqualValues(t, 10, admitted)
}

// TestDecideAgainstArithmetic compares decide with the definition computed
// in wide arithmetic.
func TestDecideAgainstArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGCRA(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		now := rapid.Int64Range(0, 1<<61).Draw(t, "now")
		debt := rapid.Int64Range(0, g.ceiling).Draw(t, "debt")
		n := rapid.Int64Range(0, g.most+2).Draw(t, "n")
		next, d := g.decide(now+debt, now, n)

		fits := debt+n*g.emission <= g.depth+g.wait || n == 0
		require.Equal(t, fits, d.Allowed)
		left := max(g.depth-debt, 0) / g.emission
		if fits {
			require.Equal(t, now+debt+n*g.emission, next)
			left = max(g.depth-debt-n*g.emission, 0) / g.emission
		} else {
			require.Equal(t, now+debt, next)
		}
		require.Equal(t, left, d.Remaining)
		require.Equal(t, g.burst, d.Limit)
		require.Equal(t, toDuration(next-now), d.ResetAfter)
		switch {
		case fits:
			require.Zero(t, d.RetryAfter)
			require.Equal(t, Admitted, d.Reason)
		case n > g.most:
			require.Equal(t, Forever, d.RetryAfter)
			require.Equal(t, Never, d.Reason)
		default:
			at := now + toTicks(d.RetryAfter)
			_, ok := g.decide(now+debt, at, n)
			require.True(t, ok.Allowed, "at RetryAfter")
			_, early := g.decide(now+debt, at-ticksPerNano, n)
			require.False(t, early.Allowed, "a nanosecond before")
		}
	})
}

// TestAccuracy: a limit is never faster than asked, and slower only within
// the stated error.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		rate  Rate
		error float64
	}{
		{PerDay(1), 0}, {PerHour(7), 1e-6}, {PerMinute(100), 1e-6}, {PerSecond(3), 1e-6},
		{PerSecond(99_999), 1e-6}, {PerSecond(10_000_000), 0}, {PerSecond(9_999_999), 2e-4},
		{PerSecond(600_000_000), 0.016}, {PerSecond(999_999_999), 0.016}, {PerSecond(1_000_000_000), 0},
	} {
		asked := float64(c.rate.Period) * ticksPerNano / float64(c.rate.Count)
		slow := float64(c.rate.emission())/asked - 1
		require.GreaterOrEqual(t, slow, 0.0, "%v", c.rate)
		require.LessOrEqual(t, slow, c.error, "%v", c.rate)
	}
}

// TestUnits checks the division by multiplication at its edges.
func TestUnits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	for range cases.Count(20_000, 1_000_000) {
		g := randomGCRA(rnd)
		for _, x := range []int64{
			0, 1, g.emission - 1, g.emission, g.emission + 1, g.depth, g.depth - 1,
			rnd.Int64N(math.MaxInt64), math.MaxInt64 / g.emission * g.emission, math.MaxInt64,
		} {
			require.Equal(t, x/g.emission, g.units(x), "%d / %d", x, g.emission)
		}
	}
}

// FuzzDecide: no input panics or is admitted beyond the bucket.
func FuzzDecide(f *testing.F) {
	f.Add(int64(10), int64(1e9), int64(10), int64(0), int64(0), int64(0), int64(1))
	f.Add(int64(1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(1e9), int64(1), int64(1), int64(math.MinInt64), int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, count, period, burst, wait, tat, now, n int64) {
		g, err := newGCRA(Rate{count, time.Duration(period)}, burst, time.Duration(wait))
		if err != nil || n < 0 || now < 0 {
			return
		}
		next, d := g.decide(tat, now, n)
		if d.Allowed && n > 0 {
			require.LessOrEqual(t, n, g.most)
			require.GreaterOrEqual(t, next, now)
			if now < 1<<62 {
				require.GreaterOrEqual(t, next, min(now+n*g.emission, math.MaxInt64))
			}
		}
		require.GreaterOrEqual(t, d.Remaining, int64(0))
		require.LessOrEqual(t, d.Remaining, g.burst)
		require.GreaterOrEqual(t, d.RetryAfter, time.Duration(0))
		require.GreaterOrEqual(t, d.NextAfter, time.Duration(0))
		require.GreaterOrEqual(t, d.ResetAfter, time.Duration(0))
	})
}
