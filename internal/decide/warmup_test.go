package decide

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func anyWarmup(rnd *rand.Rand) *Warmup {
	for {
		warmup := time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(40))))
		p, err := NewWarmup(anyRate(rnd), warmup, time.Duration(rnd.Int64N(2)*rnd.Int64N(1e10)), 1.001+rnd.Float64()*10)
		if err == nil && p.warmup > 0 {
			return p
		}
	}
}

// TestW2_WarmupUnderJumpingClocks: in any run of starts, under any clock, all but
// the last request are paid for at the rate; denials change nothing; RetryAfter
// is exact.
func TestW2_WarmupUnderJumpingClocks(t *testing.T) {
	n := cases.Count(50_000, 1_000_000)
	rnd := rand.New(rand.NewPCG(51, 52))
	for range n {
		p := anyWarmup(rnd)
		clock := jumpingClock(rnd, int64(p.stable))
		var starts []admission
		var s WarmupState
		for range 12 {
			now, cost := clock(), 1+rnd.Int64N(min(p.maxCost, 6))
			was := s
			if _, v := p.Decide(&s, now, cost); v.Allowed {
				starts = append(starts, admission{now + v.Delay, cost})
			} else {
				requireWarmupDenial(t, p, was, s, now, cost, v)
			}
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

func requireWarmupDenial(t *testing.T, p *Warmup, was, s WarmupState, now, n int64, v Verdict) {
	t.Helper()
	if s != was {
		t.Fatalf("a denial changed the state: %+v to %+v", was, s)
	}
	at := was
	if _, ok := p.Decide(&at, now+v.RetryAfter, n); !ok.Allowed {
		t.Fatalf("%+v: denied at its RetryAfter %v", *p, v.RetryAfter)
	}
	at = was
	if _, early := p.Decide(&at, now+v.RetryAfter-1, n); early.Allowed {
		t.Fatalf("%+v: admitted a tick before %v", *p, v.RetryAfter)
	}
	if _, ok := p.Admit(&at, now, n); ok {
		t.Fatal("Admit admits a request that Decide denies")
	}
}

// TestWarmupArea: from cold to warm all stored permits together cost the warm-up
// above the threshold and half of it below, one by one or at once.
func TestWarmupArea(t *testing.T) {
	rnd := rand.New(rand.NewPCG(53, 54))
	for range cases.Count(20_000, 1_000_000) {
		p := anyWarmup(rnd)
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

// TestW2_WarmupRefundsMintNothing: charges are settled and canceled while the
// rate changes. No request starts before the kept cost of earlier ones has
// drained.
func TestW2_WarmupRefundsMintNothing(t *testing.T) {
	n := cases.Count(20_000, 500_000)
	rnd := rand.New(rand.NewPCG(57, 58))
	for range n {
		p := must(NewWarmup(per(10, time.Second), time.Second, 0, 3))
		now := ticks(time.Hour)
		var s WarmupState
		var all []lent
		for range 30 {
			now += rnd.Int64N(3) / 2 * rnd.Int64N(ticks(time.Second/2))
			switch i := rnd.IntN(len(all) + 1); {
			case rnd.IntN(6) == 0:
				p = must(NewWarmup(per(10+rnd.Int64N(10), time.Second), time.Second, 0, 3))
			case i < len(all) && rnd.IntN(2) == 0:
				l, actual := &all[i], rnd.Int64N(5)
				l.kept = min(l.kept, actual)
				if actual > l.N {
					p.ForceCharge(&s, l.Charge, now, actual-l.N)
				} else {
					p.Refund(&s, l.Charge, now, l.N-actual, 0)
				}
				l.N = actual
			default:
				n := 1 + rnd.Int64N(3)
				if _, v := p.Decide(&s, now, n); v.Allowed {
					all = append(all, lent{p.Charge(&s, now, n, v.Delay), 0, now, n})
				}
			}
			require.GreaterOrEqual(t, s.cold, s.free)
		}
		requirePaid(t, all)
	}
	t.Logf("W2: %d sequences that charge, settle and cancel", n)
}

func requirePaid(t *testing.T, all []lent) {
	t.Helper()
	all = slices.DeleteFunc(all, func(l lent) bool { return l.kept == 0 })
	slices.SortStableFunc(all, func(a, b lent) int { return cmp.Compare(a.At, b.At) })
	for i, first := range all {
		var sum int64
		for _, l := range all[i:] {
			require.LessOrEqual(t, sum, l.At-first.At, "%+v", all)
			sum += ratio(l.A, l.kept, l.B>>32)
		}
	}
}

// TestWarmupExactRefund: a charge that is canceled at once restores the previous
// state, to within the rounding of the store.
func TestWarmupExactRefund(t *testing.T) {
	rnd := rand.New(rand.NewPCG(59, 60))
	for range cases.Count(20_000, 500_000) {
		p := anyWarmup(rnd)
		now := rnd.Int64N(1 << 58)
		var s WarmupState
		p.Decide(&s, now, 1+rnd.Int64N(min(p.maxCost, 50)))
		now = s.free
		was := s
		n := 1 + rnd.Int64N(min(p.maxCost, 50))
		_, v := p.Decide(&s, now, n)
		require.True(t, v.Allowed)
		c := p.Charge(&s, now, n, v.Delay)
		_, given := p.Refund(&s, c, now, n, 0)
		require.Equal(t, c.A, given)
		require.Equal(t, was.free, s.free)
		require.LessOrEqual(t, s.cold, was.cold)
		require.LessOrEqual(t, was.cold-s.cold, 2+c.A>>31, "colder than before: safe")
	}
}

// TestEndOfTheClockOfAWarmup: requests that cannot be charged any more are
// denied.
func TestEndOfTheClockOfAWarmup(t *testing.T) {
	p := must(NewWarmup(per(10, time.Second), time.Second, 0, 3))
	var s WarmupState
	for range 1000 {
		_, v := p.Decide(&s, ticks(math.MaxInt64), 1)
		require.False(t, v.Allowed)
	}
}

// FuzzS3_Warmup: no parameters and no state make the warm-up panic or mint.
func FuzzS3_Warmup(f *testing.F) {
	half := int64(maxWarmup)
	f.Add(int64(2), int64(time.Second), int64(4*time.Second), int64(0), 3.0, int64(0), int64(0), int64(1))
	f.Add(int64(1), half, half, int64(math.MaxInt64), 1e6, int64(1<<60), int64(1<<61), int64(math.MaxInt64))
	f.Add(int64(1_000_000_000), int64(time.Second), int64(1), int64(1), math.Nextafter(1, 2), int64(5), int64(3), int64(maxPermits))
	f.Fuzz(func(t *testing.T, count, period, warmup, wait int64, factor float64, free, gap, n int64) {
		p, err := NewWarmup(per(count, time.Duration(period)), time.Duration(warmup), time.Duration(wait), factor)
		if err != nil {
			return
		}
		free, n = free&(1<<61-1), n&math.MaxInt64
		s := WarmupState{free: free, cold: free + gap&math.MaxInt64%(int64(p.warmup)+1)}
		now := free / 2
		for range 4 {
			was := s
			_, v := p.Decide(&s, now, n)
			if v.Allowed && n > 0 {
				require.GreaterOrEqual(t, float64(s.free-max(was.free, now)), float64(n)*p.stable*(1-1e-12)-1)
				canceled := s
				_, given := p.Refund(&canceled, p.Charge(&s, now, n, v.Delay), now, n, 0)
				require.LessOrEqual(t, given, s.free-max(was.free, now))
				grown := s
				p.ForceCharge(&grown, p.Charge(&s, now, n, v.Delay), now, n)
				require.GreaterOrEqual(t, grown.free, s.free)
			}
			require.GreaterOrEqual(t, s.cold, s.free)
			require.LessOrEqual(t, float64(s.cold-s.free), p.warmup)
			for _, x := range spans(v) {
				require.GreaterOrEqual(t, x, int64(0))
			}
			now = max(now, s.free-p.maxWait)
		}
	})
}

// TestW2_WarmupSettleBackAndForth: permits that were refunded at the price of a
// cold limiter, and charged again at the price of a warm one, are never refunded
// for more than their charge.
func TestW2_WarmupSettleBackAndForth(t *testing.T) {
	p := must(NewWarmup(per(10, time.Second), 4*time.Second, 0, 3))
	now := ticks(time.Hour)
	var s WarmupState
	_, v := p.Decide(&s, now, 5)
	c := p.Charge(&s, now, 5, v.Delay)
	p.Refund(&s, c, now, 5, 0)
	c.N = 0
	_, v = p.Decide(&s, now, 50) // it is warm after that
	require.True(t, v.Allowed)
	before := s.free
	p.ForceCharge(&s, c, now, 5)
	c.N = 5
	charged := s.free - before
	_, given := p.Refund(&s, c, now, 5, 0)
	require.LessOrEqual(t, given, charged)
	require.Equal(t, c.A, given, "as much as at first")
}
