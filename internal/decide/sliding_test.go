package decide

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// slider has the methods of a sliding window that a store needs.
type slider[S any] interface {
	Limit() int64
	Decide(s S, now, n int64) (S, Verdict)
	Charge(s S, now, n int64, delay int64) Charge
	Refund(s S, c Charge, now, n, shift int64) (S, int64)
	ForceCharge(s S, c Charge, now, n int64) (S, bool)
	Plausible(s S, now int64) bool
	Clamp(s S, now int64) (S, bool)
	Expiry(s S, now int64) int64
}

// sliders are the sliding windows with their bounds. next makes the limit of
// another rate that replaces the last one at now.
type sliders[S any] struct {
	name     string
	next     func(r Rate, now int64) slider[*S]
	anywhere func(quota int64) int64
}

func countersKind() sliders[Counters] {
	var last *SlidingCounters
	return sliders[Counters]{"two counters", func(r Rate, now int64) slider[*Counters] {
		p := must(NewSlidingCounters(r, tick))
		if last != nil {
			p = p.Succeed(last, now)
		}
		last = p
		return p
	}, func(q int64) int64 { return 2*q - 1 }}
}

func cellsKind() sliders[Counters] {
	var last *SlidingCells
	return sliders[Counters]{"cells", func(r Rate, now int64) slider[*Counters] {
		p := must(NewSlidingCells(r, 4, tick))
		if last != nil {
			p = p.Succeed(last)
		}
		last = p
		return p
	}, func(q int64) int64 { return q }}
}

func logKind() sliders[Timestamps] {
	return sliders[Timestamps]{"log", func(r Rate, _ int64) slider[*Timestamps] { return must(NewSlidingLog(r)) },
		func(q int64) int64 { return q }}
}

// TestW2_SlidingRefundsMintNothing: charges are settled up and down and canceled
// at any time, while the quota or the period changes, some at late readings. The
// units that are kept stay within the bound of the larger quota, in the shorter
// period.
func TestW2_SlidingRefundsMintNothing(t *testing.T) {
	for name, rates := range map[string][2]Rate{
		"one rate": {per(3, time.Second), per(3, time.Second)},
		"quota":    {per(2, time.Second), per(3, time.Second)},
		"period":   {per(3, time.Second), per(3, 2*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(81, 82))
			n := cases.Count(3_000, 200_000)
			for range n {
				requireNoMint(t, countersKind(), rates, rnd)
				requireNoMint(t, cellsKind(), rates, rnd)
				requireNoMint(t, logKind(), rates, rnd)
			}
			t.Logf("W2: %d sequences that charge, settle and cancel", n)
		})
	}
}

func requireNoMint[S any](t *testing.T, kind sliders[S], rates [2]Rate, rnd *rand.Rand) {
	t.Helper()
	p, s, now := kind.next(rates[0], 0), new(S), ticks(time.Hour)
	second := ticks(time.Second)
	var all []lent
	mark := int64(0) // charges before mark cannot be refunded
	for i := range int64(30) {
		now += rnd.Int64N(3) / 2 * rnd.Int64N(second)
		reading := now
		if rates[0].Period == rates[1].Period { // else carried units count later than a late reading
			reading -= rnd.Int64N(3) / 2 * rnd.Int64N(3*second)
		}
		if !p.Plausible(s, reading) {
			reading = now // a store reads the clock again
			if _, cut := p.Clamp(s, now); cut {
				mark = i
			}
		}
		switch j := rnd.IntN(len(all) + 1); {
		case rnd.IntN(6) == 0:
			p = kind.next(rates[i%2], now)
		case j < len(all) && rnd.IntN(2) == 0:
			l, actual := &all[j], rnd.Int64N(3)*rnd.Int64N(5)
			l.kept = min(l.kept, actual)
			if actual > l.N {
				if _, cut := p.ForceCharge(s, l.Charge, now, actual-l.N); cut {
					mark = i
				}
			} else if l.mark >= mark {
				p.Refund(s, l.Charge, reading, l.N-actual, 0)
			}
			l.N = actual
		default:
			n := 1 + rnd.Int64N(p.Limit())
			if _, v := p.Decide(s, reading, n); v.Allowed {
				c := p.Charge(s, reading, n, v.Delay)
				all = append(all, lent{c, i, c.At, n})
			}
		}
	}
	for _, from := range all {
		var sum int64
		for _, l := range all {
			if l.at >= from.at && l.at-from.at < second {
				sum += l.kept
			}
		}
		if most := kind.anywhere(max(rates[0].Count, rates[1].Count)); sum > most {
			t.Fatalf("%s: %d in a second, want at most %d: %+v", kind.name, sum, most, all)
		}
	}
}

// TestSlidingExpiry: a state says no more than the zero state from its expiry
// on, and says more an instant before.
func TestSlidingExpiry(t *testing.T) {
	rnd := rand.New(rand.NewPCG(83, 84))
	for range cases.Count(5_000, 100_000) {
		requireExpiry(t, countersKind(), rnd)
		requireExpiry(t, cellsKind(), rnd)
		requireExpiry(t, logKind(), rnd)
	}
}

func requireExpiry[S any](t *testing.T, kind sliders[S], rnd *rand.Rand) {
	t.Helper()
	p, s, now := kind.next(per(5, time.Second), 0), new(S), ticks(time.Hour)
	for range 1 + rnd.IntN(4) {
		now += rnd.Int64N(int64(time.Second)) * tick
		p.Decide(s, now, 1+rnd.Int64N(2))
	}
	expiry := p.Expiry(s, now)
	require.Greater(t, expiry, now)
	_, v := p.Decide(s, expiry-1, 0)
	require.Less(t, v.Remaining, int64(5))
	_, v = p.Decide(s, expiry, 0)
	require.EqualValues(t, 5, v.Remaining)
	require.Zero(t, v.ResetAfter)
}

// TestW2_WindowRefundKeepsTheTime: units that had passed at a charge stay
// forgotten when the charge is refunded. A late reading does not find an empty
// window.
func TestW2_WindowRefundKeepsTheTime(t *testing.T) {
	requireTime(t, countersKind())
	requireTime(t, cellsKind())
	requireTime(t, logKind())
}

func requireTime[S any](t *testing.T, kind sliders[S]) {
	t.Helper()
	p, s, now := kind.next(per(3, time.Second), 0), new(S), ticks(time.Hour+time.Second/2)
	var all []admission
	ask := func(at int64) Charge {
		_, v := p.Decide(s, at, 1)
		if !v.Allowed {
			return Charge{}
		}
		c := p.Charge(s, at, 1, v.Delay)
		all = append(all, admission{c.At, 1})
		return c
	}
	for range 4 {
		ask(now)
	}
	now += ticks(2500 * time.Millisecond)
	last := ask(now)
	require.EqualValues(t, 1, last.N)
	_, given := p.Refund(s, last, now, 1, 0)
	require.EqualValues(t, 1, given)
	all = all[:len(all)-1]
	for i := range 40 {
		ask(now - ticks(2500*time.Millisecond-time.Duration(i)*time.Second/8))
	}
	for _, from := range all {
		var sum int64
		for _, a := range all {
			if a.at >= from.at && a.at-from.at < ticks(time.Second) {
				sum += a.n
			}
		}
		require.LessOrEqual(t, sum, kind.anywhere(3), "%s: %v", kind.name, all)
	}
}

// TestEndOfTheClockOfWindows: requests that cannot be charged any more are
// denied, or nothing is forgotten.
func TestEndOfTheClockOfWindows(t *testing.T) {
	requireEnd(t, countersKind())
	requireEnd(t, cellsKind())
	requireEnd(t, logKind())
}

func requireEnd[S any](t *testing.T, kind sliders[S]) {
	t.Helper()
	p, s := kind.next(per(10, time.Second), 0), new(S)
	admitted := 0
	for range 1000 {
		if _, v := p.Decide(s, ticks(math.MaxInt64), 1); v.Allowed {
			admitted++
		}
	}
	require.LessOrEqual(t, admitted, 10, kind.name)
}

// TestW2_RefundOfALaterSettlement: units that a settlement added in a later cell
// are not refunded from the cell of the charge.
func TestW2_RefundOfALaterSettlement(t *testing.T) {
	requireLaterSettlement(t, countersKind())
	requireLaterSettlement(t, cellsKind())
	requireLaterSettlement(t, logKind())
}

func requireLaterSettlement[S any](t *testing.T, kind sliders[S]) {
	t.Helper()
	p, s, now := kind.next(per(10, time.Second), 0), new(S), ticks(time.Hour)
	_, v := p.Decide(s, now, 1)
	c := p.Charge(s, now, 1, v.Delay)
	p.Decide(s, now, 4)
	later := now + ticks(900*time.Millisecond)
	if kind.name == "two counters" {
		later = now + ticks(time.Second)
	}
	p.ForceCharge(s, c, later, 3)
	c.N += 3
	_, given := p.Refund(s, c, later+ticks(400*time.Millisecond), 4, 0)
	require.LessOrEqual(t, given, int64(1), kind.name)
}
