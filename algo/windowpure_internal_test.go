package algo

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// pure is one window without clock, key or lock: its decide over a state of
// its own. It answers with the instant at which the decision counts as well.
type pure struct {
	decide func(now, n int64) (Decision, int64)
	clone  func() pure
	quota  int64
	period int64 // in ticks
	cell   func(at int64) int64
}

// pureFixed is a fixed window. The limiter reads the clock again where a word
// is too far ahead of its reading; here the latest reading stands for that.
func pureFixed(f *fixed, word, latest int64) pure {
	return pure{
		decide: func(now, n int64) (d Decision, at int64) {
			if latest = max(latest, now); !f.believable(word, f.begin(now, 0)) {
				now = latest
			}
			word, d = f.decide(word, now, n)
			return d, now
		},
		clone:  func() pure { return pureFixed(f, word, latest) },
		quota:  f.quota,
		period: f.window.by,
		cell:   func(at int64) int64 { return f.begin(at, 0) },
	}
}

func pureWindow[S any](p rules[S], s S, inherit func(heir, from *S), cell func(int64) int64) pure {
	return pure{
		decide: func(asked, n int64) (d Decision, at int64) {
			p.adopt(&s, clock{})
			at = max(asked, p.latest(&s))
			decideWindow(p, &s, &d, asked, at, n)
			return d, at
		},
		clone: func() pure {
			var heir S
			inherit(&heir, &s)
			return pureWindow(p, heir, inherit, cell)
		},
		quota:  p.most(),
		period: p.window(),
		cell:   cell,
	}
}

func pureSliding(p *sliding) pure { return pureWindow(p, tally{}, inheritTally, p.number) }

func pureLog(p *log) pure {
	return pureWindow(p, stamps{}, inheritStamps, func(at int64) int64 { return at })
}

// randomRate covers quotas from 1 to 20 and periods from 1 ns to 10 days.
func randomRate(rnd *rand.Rand) Rate {
	for {
		r := Rate{1 + rnd.Int64N(20), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(49))))}
		if r.validate() == nil {
			return r
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func randomCells(rnd *rand.Rand, r Rate) int { return 1 + rnd.IntN(int(min(12, r.Period))) }

// windowKinds are the windows with their bounds: the most in any window that is
// shorter than the period, and in any one cell.
var windowKinds = []struct {
	name     string
	make     func(rnd *rand.Rand, r Rate) pure
	anywhere func(quota int64) int64
}{
	{"fixed", func(rnd *rand.Rand, r Rate) pure {
		return pureFixed(must(newFixed(r, rnd.Int64N(1<<50), false)), 0, 0)
	}, func(q int64) int64 { return 2 * q }},
	{"two counters", func(_ *rand.Rand, r Rate) pure {
		return pureSliding(must(newSliding(r, 0)))
	}, func(q int64) int64 { return 2*q - 1 }},
	{"cells", func(rnd *rand.Rand, r Rate) pure {
		return pureSliding(must(newSliding(r, randomCells(rnd, r))))
	}, func(q int64) int64 { return q }},
	{"log", func(_ *rand.Rand, r Rate) pure {
		return pureLog(must(newLog(r)))
	}, func(q int64) int64 { return q }},
}

// nanosClock makes a clock read whole nanoseconds, as the real one does, and later
// than the beginning of a fixed window's time.
func nanosClock(clock func() int64) func() int64 {
	return func() int64 { return toTicks(maxSpan) + clock()&^(ticksPerNano-1) }
}

// TestWindowBoundsUnderJumpingClocks is promise W2. Instants are those at which
// the decisions count: the reading, or a later one that the state had seen. One
// case is one sequence of 14 calls with readings that stand still, go on and go
// back.
func TestWindowBoundsUnderJumpingClocks(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	for _, kind := range windowKinds {
		t.Run(kind.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(31, 32))
			for range n {
				p := kind.make(rnd, randomRate(rnd))
				clock := nanosClock(jumpingClock(rnd, p.period/(1+rnd.Int64N(8))))
				requireWindow(t, p, admissions(rnd, p, clock), kind.anywhere(p.quota))
			}
			t.Logf("W2: %d sequences of calls to a window under jumping clocks", n)
		})
	}
}

type admission struct{ at, n int64 }

func admissions(rnd *rand.Rand, p pure, clock func() int64) (all []admission) {
	for range 14 {
		cost := 1 + rnd.Int64N(min(p.quota, 5))
		if rnd.IntN(8) == 0 {
			cost = p.quota
		}
		if d, at := p.decide(clock(), cost); d.Allowed {
			all = append(all, admission{at, cost})
		}
	}
	return all
}

func requireWindow(t *testing.T, p pure, all []admission, anywhere int64) {
	t.Helper()
	for _, from := range all {
		var sum, inCell int64
		for _, a := range all {
			if a.at >= from.at && a.at-from.at < p.period {
				sum += a.n
			}
			if p.cell(a.at) == p.cell(from.at) {
				inCell += a.n
			}
		}
		if sum > anywhere || inCell > p.quota {
			t.Fatalf("%d in a window, %d in a cell; quota %d, period %d: %v",
				sum, inCell, p.quota, p.period, all)
		}
	}
}

// TestWindowDecisionsAreExact: RetryAfter, NextAfter and ResetAfter are the
// first nanosecond, Remaining is what is admitted, a denial changes nothing,
// and n at once is n times 1.
func TestWindowDecisionsAreExact(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	for _, kind := range windowKinds {
		t.Run(kind.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(33, 34))
			for range n {
				p := kind.make(rnd, randomRate(rnd))
				clock := nanosClock(jumpingClock(rnd, p.period/(1+rnd.Int64N(8))))
				admissions(rnd, p, clock)
				now := clock()
				_, at := p.clone().decide(now, 0)
				now = max(now, at)
				requireExact(t, p, now, 1+rnd.Int64N(p.quota))
			}
			t.Logf("U2: %d decisions of a window", n)
		})
	}
}

func requireExact(t *testing.T, p pure, now, cost int64) {
	t.Helper()
	peek, _ := p.decide(now, 0)
	require.True(t, peek.Allowed)
	at := func(after time.Duration, n int64) Decision {
		d, _ := p.clone().decide(now+toTicks(after), n)
		return d
	}
	d := at(0, cost)
	require.Equal(t, cost <= peek.Remaining, d.Allowed)
	if !d.Allowed {
		require.Equal(t, Quota, d.Reason)
		require.True(t, at(d.RetryAfter, cost).Allowed, "at %v", d.RetryAfter)
		require.False(t, at(d.RetryAfter-1, cost).Allowed, "a nanosecond before %v", d.RetryAfter)
		after, _ := p.decide(now, cost)
		require.Equal(t, d, after)
	}
	if peek.Remaining < p.quota {
		require.Equal(t, peek.Remaining, at(peek.NextAfter-1, 0).Remaining)
		require.Greater(t, at(peek.NextAfter, 0).Remaining, peek.Remaining)
		require.Less(t, at(peek.ResetAfter-1, 0).Remaining, p.quota)
		require.Equal(t, p.quota, at(peek.ResetAfter, 0).Remaining)
	} else {
		require.Zero(t, peek.NextAfter)
	}
	whole, split := p.clone(), p.clone()
	left := peek.Remaining
	whole.decide(now, left)
	for range left {
		one, _ := split.decide(now, 1)
		require.True(t, one.Allowed)
	}
	w, _ := whole.decide(now, 0)
	s, _ := split.decide(now, 0)
	require.Equal(t, w, s)
	require.Zero(t, w.Remaining)
	d, _ = p.decide(now, p.quota+1)
	require.Equal(t, Never, d.Reason)
	require.Equal(t, Forever, d.RetryAfter)
}

// TestWindowsAgainstDefinitions compares what weighs with the definition,
// counted over everything that was ever admitted.
func TestWindowsAgainstDefinitions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(35, 36))
	for range cases.Count(20_000, 500_000) {
		r := randomRate(rnd)
		weighted, cells := must(newSliding(r, 0)), must(newSliding(r, randomCells(rnd, r)))
		exact := must(newLog(r))
		for _, c := range []struct {
			p    pure
			used func(all []admission, now int64) int64
		}{
			{pureSliding(weighted), func(all []admission, now int64) int64 {
				return weightedUse(weighted, all, now)
			}},
			{pureSliding(cells), func(all []admission, now int64) (sum int64) {
				for _, a := range all {
					if cells.number(a.at) >= cells.number(now)-cells.cells {
						sum += a.n
					}
				}
				return sum
			}},
			{pureLog(exact), func(all []admission, now int64) (sum int64) {
				for _, a := range all {
					if a.at > now-exact.window() {
						sum += a.n
					}
				}
				return sum
			}},
		} {
			clock := nanosClock(jumpingClock(rnd, c.p.period/(1+rnd.Int64N(8))))
			var all []admission
			for range 10 {
				now, n := clock(), rnd.Int64N(c.p.quota+1)
				d, at := c.p.decide(now, n)
				used := c.used(all, at)
				require.Equal(t, n == 0 || used+n <= c.p.quota, d.Allowed)
				if d.Allowed {
					all = append(all, admission{at, n})
					used += n
				}
				require.Equal(t, max(c.p.quota-used, 0), d.Remaining)
			}
		}
	}
}

// weightedUse is ceil(older * left / W) + newer, in wide arithmetic.
func weightedUse(p *sliding, all []admission, now int64) int64 {
	var older, newer int64
	for _, a := range all {
		switch p.number(now) - p.number(a.at) {
		case 0:
			newer += a.n
		case 1:
			older += a.n
		}
	}
	x := new(big.Int).Mul(big.NewInt(older), big.NewInt(p.begin(p.number(now)+1)-now))
	x.Add(x, big.NewInt(p.period-1)).Div(x, big.NewInt(p.period))
	return x.Int64() + newer
}
