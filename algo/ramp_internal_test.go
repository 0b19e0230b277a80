package algo

import (
	"math"
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

func randomRamp(rnd *rand.Rand) *ramp {
	for {
		r := Rate{1 + rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(46))))}
		warmup := time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(40))))
		p, err := newRamp(r, warmup, time.Duration(rnd.Int64N(2)*rnd.Int64N(1e10)), 1.001+rnd.Float64()*10)
		if err == nil {
			return p
		}
	}
}

// TestRampUnderJumpingClocks is W2 for the warm-up: in any run of starts, under
// any clock, all but the last request are paid for at the rate; denials change
// nothing; RetryAfter is exact.
func TestRampUnderJumpingClocks(t *testing.T) {
	n := cases.Count(50_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(51, 52))
	type start struct{ at, n int64 }
	for range n {
		p := randomRamp(rnd)
		clock := jumpingClock(rnd, int64(p.stable))
		var starts []start
		var w warmth
		for range 12 {
			now, cost := clock(), 1+rnd.Int64N(min(p.most, 6))
			next, d := p.decide(w, now, cost)
			if d.Allowed {
				starts = append(starts, start{max(w.free, now), cost})
			} else {
				checkRampDenial(t, p, w, next, now, cost, d)
			}
			w = next
		}
		for i, first := range starts {
			var sum int64
			for _, s := range starts[i:] {
				// the noise that price rounds away is below a tick here
				if float64(sum)*p.stable > float64(s.at-first.at)*(1+1e-12)+1 {
					t.Fatalf("%d permits in %d ticks: %+v %v", sum, s.at-first.at, *p, starts)
				}
				sum += s.n
			}
		}
	}
	t.Logf("W2: %d sequences of 12 calls under jumping clocks", n)
}

func checkRampDenial(t *testing.T, p *ramp, w, next warmth, now, n int64, d Decision) {
	if next != w {
		t.Fatalf("a denial changed the state: %+v to %+v", w, next)
	}
	at := now + toTicks(d.RetryAfter)
	if _, ok := p.decide(w, at, n); !ok.Allowed {
		t.Fatalf("%+v: denied at its RetryAfter %v", *p, d.RetryAfter)
	}
	if _, early := p.decide(w, at-ticksPerNano, n); early.Allowed {
		t.Fatalf("%+v: admitted a nanosecond before %v", *p, d.RetryAfter)
	}
}

// TestRampArea: from cold to warm all stored permits together cost the warm-up
// above the threshold and half of it below, one by one or at once.
func TestRampArea(t *testing.T) {
	rnd := rand.New(rand.NewPCG(53, 54))
	for range cases.Count(20_000, 1_000_000) {
		p := randomRamp(rnd)
		most := p.warmup / p.cool
		if most < 4 || most > 1000 {
			continue
		}
		n := int64(most)
		whole, taken := p.price(0, n)
		var split, gap int64
		for range n {
			cost, one := p.price(gap, 1)
			split, gap = split+cost, gap+one
		}
		// Each single price is rounded up by less than a tick, and starts at a
		// store that is rounded to a tick: of the store's value, that is a part.
		slack := float64(n) * (2 + p.slope*float64(n)/p.cool)
		if math.Abs(float64(split-whole)) > slack || math.Abs(float64(gap-taken)) > float64(n) {
			t.Fatalf("%+v: %d at once cost %d, one by one %d", *p, n, whole, split)
		}
		if area := 1.5 * p.warmup; float64(whole) > area+1 || float64(whole) < area-p.stable-1 {
			t.Fatalf("%+v: %d cost %d, want up to %v", *p, n, whole, area)
		}
	}
}

// TestWarmingLinearizable is L1 for the warm-up.
func TestWarmingLinearizable(t *testing.T) {
	interleaved(t)
	n := cases.Count(10_000, 50_000)
	rnd := rand.New(rand.NewPCG(55, 56))
	synctest.Test(t, func(t *testing.T) {
		for i := range n {
			w := Must(NewSmoothWarmingUp(PerSecond(10), time.Second, MaxWait(2*time.Second))).guava.(*warming)
			w.cells.clock.start = time.Now().Add(-time.Hour)
			key := [...]string{"", "k"}[i%2]
			w.allowAt(w.cells.clock.now(), key, 1) // now the key has a slot
			h, _ := w.cells.lock(key, w.cells.clock.now())
			first := *h.value
			h.leave()
			ok := porcupine.CheckOperations(rampModel(w.ramp.Load(), first), warmingHistory(w, key, rnd.Uint64()))
			require.True(t, ok, "history %d", i)
		}
	})
	t.Logf("L1: %d histories of 4x10 calls", n)
}

func rampModel(p *ramp, first warmth) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			in := input.(call)
			next, d := p.decide(state.(warmth), in.now, in.n)
			return d == output.(Decision), next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

func warmingHistory(w *warming, key string, seed uint64) []porcupine.Operation {
	var clock atomic.Int64
	var group sync.WaitGroup
	var histories [4][10]porcupine.Operation
	for c := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range histories[c] {
				late := toTicks(time.Duration(rnd.Int64N(int64(time.Second / 2))))
				in := call{w.cells.clock.now() - late, rnd.Int64N(4)}
				o := porcupine.Operation{ClientId: c, Input: in, Call: clock.Add(1)}
				var lease Lease
				w.acquireAt(&lease, in.now, key, in.n)
				o.Output, o.Return = lease.Decision, clock.Add(1)
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

// FuzzRamp: no parameters and no state make the warm-up panic or mint.
func FuzzRamp(f *testing.F) {
	f.Add(int64(2), int64(time.Second), int64(4*time.Second), int64(0), 3.0, int64(0), int64(0), int64(1))
	f.Add(int64(1), int64(rampSpan), int64(rampSpan), int64(math.MaxInt64), 1e6, int64(1<<60), int64(1<<61), int64(math.MaxInt64))
	f.Add(int64(1_000_000_000), int64(time.Second), int64(1), int64(1), math.Nextafter(1, 2), int64(5), int64(3), int64(rampMost))
	f.Fuzz(func(t *testing.T, count, period, warmup, wait int64, factor float64, free, gap, n int64) {
		if !(factor > 1 && factor <= mostColdFactor) {
			return
		}
		p, err := newRamp(Rate{count, time.Duration(period)}, time.Duration(warmup), time.Duration(wait), factor)
		if err != nil {
			return
		}
		free, n = free&(1<<61-1), n&math.MaxInt64
		w := warmth{free: free, cold: free + gap&math.MaxInt64%(int64(p.warmup)+1)}
		now := free / 2
		for range 4 {
			next, d := p.decide(w, now, n)
			if d.Allowed && n > 0 {
				require.GreaterOrEqual(t, float64(next.free-max(w.free, now)), float64(n)*p.stable*(1-1e-12)-1)
			}
			require.GreaterOrEqual(t, next.cold, next.free)
			require.LessOrEqual(t, float64(next.cold-next.free), p.warmup)
			for _, x := range []time.Duration{d.Delay, d.RetryAfter, d.NextAfter, d.ResetAfter} {
				require.GreaterOrEqual(t, x, time.Duration(0))
			}
			w, now = next, max(now, next.free-p.wait)
		}
	})
}
