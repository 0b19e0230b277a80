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

// anyThreeColor covers the three plans, rates that do not divide, and empty
// buckets where they are allowed.
func anyThreeColor(rnd *rand.Rand) *ThreeColor {
	for {
		rate := func() Rate {
			return per(1+rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1+rnd.Int64N(1<<(1+rnd.IntN(46)))))
		}
		m, err := twoBuckets(plan(rnd.IntN(3)), rate(), rnd.Int64N(8), rate(), rnd.Int64N(8), "rate", "burst")
		if err != nil {
			continue
		}
		if m.plan == spilling {
			m.excess.count, m.excess.period = m.committed.count, m.committed.period
			m.excess.parts = m.excess.size * m.excess.period
		}
		return m
	}
}

// fluid is a marker after the letter of the RFCs in rational numbers: buckets
// hold tokens, and fill with time.
type fluid struct {
	m    *ThreeColor
	last int64
	c, e *big.Rat
}

func rational(a, b int64) *big.Rat { return big.NewRat(a, b) }

func pour(into *big.Rat, tokens *big.Rat, size int64) (sum, spilled *big.Rat) {
	sum, top := new(big.Rat).Add(into, tokens), rational(size, 1)
	if sum.Cmp(top) <= 0 {
		return sum, new(big.Rat)
	}
	return top, new(big.Rat).Sub(sum, top)
}

func (f *fluid) fill(now int64) {
	if now <= f.last {
		return
	}
	dt := rational(now-f.last, 1)
	f.last = now
	var spilled *big.Rat
	f.c, spilled = pour(f.c, new(big.Rat).Mul(dt, rational(f.m.committed.count, f.m.committed.period)), f.m.committed.size)
	if f.m.plan != spilling {
		spilled = new(big.Rat).Mul(dt, rational(f.m.excess.count, f.m.excess.period))
	}
	f.e, _ = pour(f.e, spilled, f.m.excess.size)
}

func (f *fluid) mark(now, n int64, in Color) Color {
	f.fill(now)
	b := rational(n, 1)
	hasC, hasE := f.c.Cmp(b) >= 0, f.e.Cmp(b) >= 0
	takeC := func() { f.c = new(big.Rat).Sub(f.c, b) }
	takeE := func() { f.e = new(big.Rat).Sub(f.e, b) }
	if f.m.plan == peaking { // RFC 2698
		switch {
		case in == Red || !hasE:
			return Red
		case in == Yellow || !hasC:
			takeE()
			return Yellow
		}
		takeE()
		takeC()
		return Green
	}
	switch { // RFC 2697, RFC 4115
	case in == Green && hasC:
		takeC()
		return Green
	case in != Red && hasE:
		takeE()
		return Yellow
	}
	return Red
}

// TestW2_ThreeColorAgainstTheRFCs: under any clock the colors equal the RFCs'
// in exact rational arithmetic, and a Red request changes nothing.
func TestW2_ThreeColorAgainstTheRFCs(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(41, 42))
	for range n {
		m := anyThreeColor(rnd)
		unit := max(m.committed.period/m.committed.count, 1)
		clock := jumpingClock(rnd, min(unit, 1<<40))
		f := &fluid{m: m, c: rational(m.committed.size, 1), e: rational(m.excess.size, 1)}
		var s ColorState
		for i := range 16 {
			now, cost, in := clock(), rnd.Int64N(5), Color(rnd.IntN(3))
			was := s
			out := m.Mark(&s, now<<m.shift, cost, in)
			before := *f
			want := f.mark(now, cost, in)
			if want == Red || cost == 0 { // no change, so no refill either
				*f = before
			}
			if out != want {
				t.Fatalf("call %d: %d units of %v at %d are %v, want %v: %+v %+v", i, cost, in, now, out, want, *m, s)
			}
			if (out == Red || cost == 0) && was != s {
				t.Fatalf("%v changed the state: %+v to %+v", out, was, s)
			}
			if in > out {
				t.Fatalf("%v became %v", in, out)
			}
		}
	}
	t.Logf("W2: %d sequences of 16 calls against rational arithmetic", n)
}

// TestW2_ThreeColorBounds: in any run of calls under any clock the units of a
// color stay within burst + rate*elapsed, in exact integers.
func TestW2_ThreeColorBounds(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(43, 44))
	for range n {
		m := anyThreeColor(rnd)
		clock := jumpingClock(rnd, min(max(m.committed.period/m.committed.count, 1), 1<<40))
		var s ColorState
		var calls []colored
		for range 16 {
			now, cost := clock(), rnd.Int64N(5)
			out := m.Mark(&s, now<<m.shift, cost, Color(rnd.IntN(2)))
			if out != Red && cost > 0 { // else it fills nothing, so it begins nothing
				calls = append(calls, colored{now, cost, out})
			}
		}
		requireColors(t, m, calls)
	}
}

// colored are n units at an instant in steps.
type colored struct {
	now, n int64
	out    Color
}

// requireColors looks at every run.
func requireColors(t *testing.T, m *ThreeColor, calls []colored) {
	t.Helper()
	for i := range calls {
		var units [2]int64
		last := calls[i].now
		for _, c := range calls[i:] {
			last = max(last, c.now)
			units[c.out] += c.n
			elapsed := last - calls[i].now
			if !m.within(units[Green], units[Yellow], elapsed) {
				t.Fatalf("%v units in %d steps: %+v", units, elapsed, *m)
			}
		}
	}
}

// within reports units*period <= parts + count*elapsed without overflow.
func (m *meter) within(units, parts, elapsed int64) bool {
	gain := new(big.Int).Mul(big.NewInt(m.count), big.NewInt(elapsed))
	return big.NewInt(units*m.period-parts).Cmp(gain) <= 0
}

func (m *ThreeColor) within(green, yellow, elapsed int64) bool {
	ok := m.committed.within(green, m.committed.parts, elapsed)
	switch m.plan {
	case spilling:
		ok = ok && m.committed.within(green+yellow, m.committed.parts+m.excess.parts, elapsed)
	case peaking:
		ok = ok && m.excess.within(green+yellow, m.excess.parts, elapsed)
	case independent:
		ok = ok && m.excess.within(yellow, m.excess.parts, elapsed)
	}
	return ok
}

// FuzzS3_ThreeColor: no parameters and no state make a marker panic or mint.
func FuzzS3_ThreeColor(f *testing.F) {
	f.Add(uint8(0), int64(10), int64(time.Second), int64(5), int64(5), int64(0), int64(1))
	f.Add(uint8(1), int64(1), int64(MaxSpan), int64(1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(uint8(2), int64(999_999_937), int64(time.Second), int64(1<<31), int64(0), int64(1<<60), int64(1<<31))
	f.Fuzz(func(t *testing.T, p uint8, count, period, cbs, ebs, step, n int64) {
		r := per(count, time.Duration(period))
		m, err := twoBuckets(plan(p%3), r, cbs, r, ebs, "rate", "burst")
		if err != nil {
			return
		}
		step, n = step&(1<<55-1), n&math.MaxInt64
		var s ColorState
		for i := range int64(4) {
			out := m.Mark(&s, i*step<<m.shift, n, Color(i%3))
			if out == Green && n > cbs || out == Yellow && n > ebs {
				t.Fatalf("%d units are %v: %+v", n, out, m)
			}
			require.GreaterOrEqual(t, s.committed, int64(0))
			require.GreaterOrEqual(t, s.excess, int64(0))
			require.LessOrEqual(t, s.committed, m.committed.parts)
			require.LessOrEqual(t, s.excess, m.excess.parts)
			require.GreaterOrEqual(t, m.Expiry(&s, 0), s.last<<m.shift)
		}
		for range 5 {
			s.committed, s.excess = m.committed.forceCharge(s.committed, n, n), m.excess.forceCharge(s.excess, 0, n)
			require.GreaterOrEqual(t, s.committed, int64(0))
			require.LessOrEqual(t, s.committed, 4*m.committed.parts)
			require.LessOrEqual(t, s.excess, 2*m.excess.parts)
		}
		require.GreaterOrEqual(t, m.committed.refundable(s.committed, n, n, step), int64(0))
		require.LessOrEqual(t, m.committed.refundable(s.committed, n, n, step), s.committed)
		require.GreaterOrEqual(t, m.Expiry(&s, 0), s.last<<m.shift)
		for pass := Green; pass <= Red; pass++ {
			c := &ColorLimit{m, pass}
			_, v := c.Decide(&s, 5*step<<m.shift, n)
			require.LessOrEqual(t, v.Remaining, v.Limit)
			for _, x := range spans(v) {
				require.GreaterOrEqual(t, x, int64(0))
			}
		}
	})
}
