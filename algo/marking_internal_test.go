package algo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// randomMarking covers the three plans, rates that do not divide, and empty
// buckets where they are allowed.
func randomMarking(rnd *rand.Rand) *marking {
	for {
		rate := func() Rate {
			return Rate{1 + rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(46))))}
		}
		m, err := twoBuckets(plan(rnd.IntN(3)), rate(), rnd.Int64N(8), rate(), rnd.Int64N(8), "rate", "burst")
		if m.plan == spilling {
			m.excess.count, m.excess.period = m.committed.count, m.committed.period
			m.excess.parts = m.excess.size * m.excess.period
		}
		if err == nil {
			return &m
		}
	}
}

// fluid is a marker after the letter of the RFCs in rational numbers: buckets
// hold tokens, and fill with time.
type fluid struct {
	m    *marking
	last int64
	c, e *big.Rat
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

func pour(into *big.Rat, tokens *big.Rat, size int64) (sum, spilled *big.Rat) {
	sum, top := new(big.Rat).Add(into, tokens), ratio(size, 1)
	if sum.Cmp(top) <= 0 {
		return sum, new(big.Rat)
	}
	return top, new(big.Rat).Sub(sum, top)
}

func (f *fluid) mark(now, n int64, in Color) Color {
	if now > f.last {
		dt := ratio(now-f.last, 1)
		f.last = now
		var spilled *big.Rat
		f.c, spilled = pour(f.c, new(big.Rat).Mul(dt, ratio(f.m.committed.count, f.m.committed.period)), f.m.committed.size)
		if f.m.plan != spilling {
			spilled = new(big.Rat).Mul(dt, ratio(f.m.excess.count, f.m.excess.period))
		}
		f.e, _ = pour(f.e, spilled, f.m.excess.size)
	}
	b := ratio(n, 1)
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

// TestMarkingAgainstTheRFCs: under any clock the colors are those of the RFCs
// in exact rational arithmetic, and what is Red changes nothing.
func TestMarkingAgainstTheRFCs(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(41, 42))
	for range n {
		m := randomMarking(rnd)
		unit := max(m.committed.period/m.committed.count, 1)
		clock := jumpingClock(rnd, min(unit, 1<<40))
		f := &fluid{m: m, c: ratio(m.committed.size, 1), e: ratio(m.excess.size, 1)}
		var s meters
		for i := range 16 {
			now, cost, in := clock(), rnd.Int64N(5), Color(rnd.IntN(3))
			next, out := m.decide(s, now, cost, in)
			before := *f
			want := f.mark(now, cost, in)
			if want == Red { // what is Red fills nothing either
				*f = before
			}
			if out != want {
				t.Fatalf("call %d: %d units of %v at %d are %v, want %v: %+v %+v", i, cost, in, now, out, want, *m, s)
			}
			if out == Red && next != s {
				t.Fatalf("Red changed the state: %+v to %+v", s, next)
			}
			if in > out {
				t.Fatalf("%v became %v", in, out)
			}
			s = next
		}
	}
	t.Logf("W2: %d sequences of 16 calls against rational arithmetic", n)
}

// TestMarkingBounds is W2 for markers: in any run of calls under any clock the
// units of a color stay within burst + rate*elapsed, in exact integers.
func TestMarkingBounds(t *testing.T) {
	n := cases.Count(20_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(43, 44))
	type colored struct {
		now, n int64
		out    Color
	}
	for range n {
		m := randomMarking(rnd)
		clock := jumpingClock(rnd, min(max(m.committed.period/m.committed.count, 1), 1<<40))
		var s meters
		var calls []colored
		for range 16 {
			now, cost := clock(), rnd.Int64N(5)
			var out Color
			s, out = m.decide(s, now, cost, Color(rnd.IntN(2)))
			calls = append(calls, colored{now, cost, out})
		}
		for i := range calls {
			if calls[i].out == Red { // it fills nothing, so it begins nothing
				continue
			}
			var green, yellow, last int64
			for _, c := range calls[i:] {
				last = max(last, c.now)
				switch c.out {
				case Green:
					green += c.n
				case Yellow:
					yellow += c.n
				}
				checkMarked(t, m, green, yellow, max(last-calls[i].now, 0))
			}
		}
	}
}

// within reports units*period <= parts + count*elapsed without overflow.
func (m meter) within(units, parts, elapsed int64) bool {
	gain := new(big.Int).Mul(big.NewInt(m.count), big.NewInt(elapsed))
	return big.NewInt(units*m.period-parts).Cmp(gain) <= 0
}

func checkMarked(t *testing.T, m *marking, green, yellow, elapsed int64) {
	ok := m.committed.within(green, m.committed.parts, elapsed)
	switch m.plan {
	case spilling:
		ok = ok && m.committed.within(green+yellow, m.committed.parts+m.excess.parts, elapsed)
	case peaking:
		ok = ok && m.excess.within(green+yellow, m.excess.parts, elapsed)
	case independent:
		ok = ok && m.excess.within(yellow, m.excess.parts, elapsed)
	}
	if !ok {
		t.Fatalf("%d green and %d yellow in %d ns: %+v", green, yellow, elapsed, *m)
	}
}

// TestMarkersLinearizable is L1 for markers: four goroutines, ten calls each,
// late readings of the clock.
func TestMarkersLinearizable(t *testing.T) {
	interleaved(t)
	n := cases.Count(10_000, 50_000)
	rnd := rand.New(rand.NewPCG(45, 46))
	synctest.Test(t, func(t *testing.T) {
		for i := range n {
			var made Marker
			switch i % 3 {
			case 0:
				made = must(NewSRTCM(PerSecond(10), 5, 4))
			case 1:
				made = must(NewTRTCM(PerSecond(5), 3, PerSecond(10), 6))
			default:
				made = must(NewRFC4115(PerSecond(10), 3, PerSecond(7), 4))
			}
			m, key := made.(*marker), [...]string{"", "k"}[i%2]
			m.cells.clock.start = time.Now().Add(-time.Hour)
			m.markAt(m.now(), key, 1, Green) // now the key has a slot
			ok := porcupine.CheckOperations(markingModel(m, key), markHistory(m, key, rnd.Uint64()))
			require.True(t, ok, "history %d", i)
		}
	})
	t.Logf("L1: %d histories of 4x10 calls", n)
}

type markCall struct {
	now, n int64
	in     Color
}

func markingModel(m *marker, key string) porcupine.Model {
	h, _ := m.cells.lock(key, m.now())
	first := h.value.meters
	h.leave()
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			in := input.(markCall)
			next, out := m.decide(state.(meters), in.now>>tickShift, in.n, in.in)
			if in.n == 0 {
				next = state.(meters)
			}
			return out == output.(Color), next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

func markHistory(m *marker, key string, seed uint64) []porcupine.Operation {
	var clock atomic.Int64
	var group sync.WaitGroup
	var histories [4][10]porcupine.Operation
	for c := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range histories[c] {
				late := toTicks(time.Duration(rnd.Int64N(int64(time.Second / 2))))
				in := markCall{m.now() - late, rnd.Int64N(4), Color(rnd.IntN(3))}
				o := porcupine.Operation{ClientId: c, Input: in, Call: clock.Add(1)}
				o.Output = m.markAt(in.now, key, in.n, in.in)
				o.Return = clock.Add(1)
				histories[c][i] = o
			}
		})
	}
	group.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h[:]...)
	}
	return all
}

// FuzzMarking: no parameters and no state make a marker panic or mint.
func FuzzMarking(f *testing.F) {
	f.Add(uint8(0), int64(10), int64(time.Second), int64(5), int64(5), int64(0), int64(1))
	f.Add(uint8(1), int64(1), int64(maxSpan), int64(1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(uint8(2), int64(999_999_937), int64(time.Second), int64(1<<31), int64(0), int64(1<<60), int64(1<<31))
	f.Fuzz(func(t *testing.T, p uint8, count, period, cbs, ebs, step, n int64) {
		r := Rate{count, time.Duration(period)}
		m, err := twoBuckets(plan(p%3), r, cbs, r, ebs, "rate", "burst")
		if err != nil {
			return
		}
		step, n = step&(1<<57-1), n&math.MaxInt64
		var s meters
		for i := range int64(4) {
			next, out := m.decide(s, i*step, n, Color(i%3))
			if out == Green && n > cbs || out == Yellow && n > ebs {
				t.Fatalf("%d units are %v: %+v", n, out, m)
			}
			require.GreaterOrEqual(t, next.committed, int64(0))
			require.GreaterOrEqual(t, next.excess, int64(0))
			require.LessOrEqual(t, next.committed, m.committed.parts)
			require.LessOrEqual(t, next.excess, m.excess.parts)
			require.GreaterOrEqual(t, m.fullAt(next), next.last)
			s = next
		}
		for range 5 {
			s.committed, s.excess = m.committed.owe(s.committed, n, n), m.excess.owe(s.excess, 0, n)
			require.GreaterOrEqual(t, s.committed, int64(0))
			require.LessOrEqual(t, s.committed, 4*m.committed.parts)
			require.LessOrEqual(t, s.excess, 2*m.excess.parts)
		}
		require.GreaterOrEqual(t, m.committed.weighs(s.committed, n, n, step), int64(0))
		require.LessOrEqual(t, m.committed.weighs(s.committed, n, n, step), s.committed)
		require.GreaterOrEqual(t, m.fullAt(s), s.last)
	})
}
