package decide

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// shapeParameters are the parameters of all shapes.
type shapeParameters struct {
	rate, burstAt       Rate
	burst, slack, queue int64
	delayAfter          int64
	wait                time.Duration
}

var shapes = map[string]func(p shapeParameters) (*GCRA, error){
	"token and leaky bucket": func(p shapeParameters) (*GCRA, error) { return NewGCRA(p.rate, p.burst, p.wait) },
	"pacer":                  func(p shapeParameters) (*GCRA, error) { return NewPacer(p.rate, p.slack, p.queue, p.wait) },
	"nginx":                  func(p shapeParameters) (*GCRA, error) { return NewNginx(p.rate, p.burst, p.delayAfter) },
	"smooth bursty": func(p shapeParameters) (*GCRA, error) {
		return NewSmoothBursty(p.rate, p.burst, p.burstAt, p.wait)
	},
}

// anyShape covers rates from 1 a day to one a step, and all parameters of the
// shape.
func anyShape(rnd *rand.Rand, make func(p shapeParameters) (*GCRA, error)) *GCRA {
	sometimes := func(n, otherwise int64) int64 {
		if rnd.IntN(2) == 0 {
			return otherwise
		}
		return n
	}
	for {
		r := anyRate(rnd)
		g, err := make(shapeParameters{
			rate: r, burstAt: r, burst: rnd.Int64N(1 << rnd.IntN(12)), slack: rnd.Int64N(1 << rnd.IntN(6)),
			queue: sometimes(rnd.Int64N(20), Unbounded), delayAfter: sometimes(rnd.Int64N(8), Unbounded),
			wait: time.Duration(sometimes(rnd.Int64N(1e10), int64(r.Period))),
		})
		if err == nil {
			return g
		}
	}
}

// TestW2_StartsUnderJumpingClocks: for any sequence of clock readings the starts
// of a run have at most the units that fit at once, or one larger cost, plus the
// units of the rate from the first to the last. A pacer without slack starts n
// units n*T after the start before. A request whose cost delays only later ones
// adds its own cost.
func TestW2_StartsUnderJumpingClocks(t *testing.T) {
	n := cases.Count(50_000, 1_000_000)
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(31, 32))
			for range n {
				requireStarts(t, anyShape(rnd, make), rnd)
			}
			t.Logf("W2: %d sequences of 12 calls under jumping clocks", n)
		})
	}
}

func requireStarts(t *testing.T, g *GCRA, rnd *rand.Rand) {
	type start struct{ at, cost int64 }
	clock := jumpingClock(rnd, g.emission)
	var starts []start
	var tat int64
	for range 12 {
		now, n := clock(), 1+rnd.Int64N(min(g.maxCost, 4))
		next, v := g.Decide(tat, now, n)
		if !v.Allowed {
			if next != tat {
				t.Fatalf("a denial changed the state: %+v, %d to %d", *g, tat, next)
			}
			continue
		}
		tat = next
		starts = append(starts, start{now + v.Delay, n * g.emission})
	}
	for i, first := range starts {
		var sum int64
		for j, s := range starts[i:] {
			sum += s.cost
			most := max(g.depth, first.cost) + s.at - first.at
			if g.forward {
				most = g.depth + s.cost + s.at - first.at
			}
			if sum > most {
				t.Fatalf("starts %d to %d hold %d ticks, want %d: %+v %v", i, i+j, sum, most, *g, starts)
			}
			if j == 1 && g.depth == g.emission && !g.forward && s.at-first.at < s.cost {
				t.Fatalf("starts %d ticks apart, want %d", s.at-first.at, s.cost)
			}
		}
	}
}

// TestU2_ExactRetryAfter: for every shape, from any state, a denial's RetryAfter
// suffices and a tick less does not; neither does an admission's Delay come a
// tick early.
func TestU2_ExactRetryAfter(t *testing.T) {
	for name, make := range shapes {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(33, 34))
			n := cases.Count(50_000, 1_000_000)
			for range n {
				g := anyShape(rnd, make)
				now := rnd.Int64N(1 << 60)
				tat := now + rnd.Int64N(1+min(g.maxDebt, 2*(g.depth+g.maxWait)))
				n := 1 + rnd.Int64N(min(g.maxCost, 1<<20))
				_, v := g.Decide(tat, now, n)
				if v.Allowed {
					if v.Delay > 0 && !startsAt(g, tat, now, n, v.Delay) {
						t.Fatalf("%+v: delay %v of %d at debt %d", *g, v.Delay, n, tat-now)
					}
					continue
				}
				if _, ok := g.Decide(tat, now+v.RetryAfter, n); !ok.Allowed {
					t.Fatalf("%+v: %d is denied at its RetryAfter %v", *g, n, v.RetryAfter)
				}
				if _, early := g.Decide(tat, now+v.RetryAfter-1, n); early.Allowed {
					t.Fatalf("%+v: %d is admitted a tick before %v", *g, n, v.RetryAfter)
				}
			}
			t.Logf("U2: %d decisions of a bucket", n)
		})
	}
}

// startsAt reports whether n units would start at once after delay, and not a
// tick earlier.
func startsAt(g *GCRA, tat, now, n, delay int64) bool {
	_, due := g.Admit(tat, now+delay, n)
	_, early := g.Admit(tat, now+delay-1, n)
	if n*g.emission > g.depth && !g.forward { // it waits for itself: nothing to compare with later
		return true
	}
	return due && !early
}

// TestW2_StrictArithmetic: burst and refill never exceed the quota, for any
// quota, burst and period; one tick less would.
func TestW2_StrictArithmetic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(37, 38))
	for range cases.Count(50_000, 1_000_000) {
		r := per(1+rnd.Int64N(1<<rnd.IntN(30)), time.Duration(1+rnd.Int64N(1<<(1+rnd.IntN(50)))))
		g, err := NewStrict(r, 1+rnd.Int64N(r.Count))
		if err != nil {
			continue // too fast, or it would take longer than a year to fill
		}
		require.LessOrEqual(t, g.burst+ticks(r.Period)/g.emission, r.Count, "%+v", r)
		fastest := ticks(r.Period+1) / (r.Count - g.burst + 1)
		require.LessOrEqual(t, g.emission, fastest+1)
	}
}

// TestW2_StrictUnderJumpingClocks: no run of admissions whose readings span a
// period or less holds more than the quota.
func TestW2_StrictUnderJumpingClocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(39, 40))
	for range cases.Count(20_000, 1_000_000) {
		r := windowRate(rnd)
		g := must(NewStrict(r, 1+rnd.Int64N(r.Count)))
		clock := jumpingClock(rnd, g.emission)
		var all []admission
		var tat int64
		for range 30 {
			now, n := clock(), 1+rnd.Int64N(min(g.burst, 3))
			var ok bool
			if tat, ok = g.Admit(tat, now, n); ok {
				all = append(all, admission{now, n})
			}
		}
		for i, from := range all {
			var sum, last int64
			for _, a := range all[i:] {
				if last = max(last, a.at); last-from.at > r.Ticks(r.Period) {
					break
				}
				sum += a.n
			}
			require.LessOrEqual(t, sum, r.Count, "%v burst %d: %v", r, g.burst, all)
		}
	}
}

func TestShapeErrors(t *testing.T) {
	r, slow := per(10, time.Second), per(1, MaxSpan)
	for want, err := range map[string]error{
		"burst is 0, want 1 or more":                                               errOf(NewGCRA(r, 0, 0)),
		"max wait is -1ns, want 0 or more":                                         errOf(NewGCRA(r, 1, -1)),
		"slack is -1, want 0 or more":                                              errOf(NewPacer(r, -1, 0, 0)),
		"max queue is -1, want 0 or more":                                          errOf(NewPacer(r, 0, -1, 0)),
		"burst is -1, want 0 or more":                                              errOf(NewNginx(r, -1, 0)),
		"delay after is -1, want 0 or more":                                        errOf(NewNginx(r, 0, -1)),
		"burst is 11, want 1 to the 10 of the rate":                                errOf(NewStrict(r, 11)),
		"rate: period is 8760h0m0s, want less than 8760h0m0s":                      errOf(NewStrict(slow, 1)),
		"burst is 2: at 1/8760h0m0s it takes longer than 8760h0m0s to fill":        errOf(NewGCRA(slow, 2, 0)),
		"burst is 1: at 1/8760h0m0s it leaves no room for a unit within 8760h0m0s": errOf(NewNginx(slow, 1, 0)),
		"slack is 1: at 1/8760h0m0s it leaves no room for a unit within 8760h0m0s": errOf(NewPacer(slow, 1, 0, 0)),
		"rate: count is 0, want 1 or more (algo.DenyAll denies everything)":        errOf(NewSmoothBursty(r, 1, per(0, 1), 0)),
	} {
		require.EqualError(t, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

// FuzzS3_Shapes: no parameters and no state make a shape panic, mint, or turn a
// sum around.
func FuzzS3_Shapes(f *testing.F) {
	f.Add(int64(10), int64(time.Second), int64(5), int64(0), int64(0), int64(0), int64(1))
	f.Add(int64(1), int64(MaxSpan), int64(1), int64(math.MaxInt64), int64(3), int64(1), int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MaxInt64), int64(-1), int64(math.MaxInt64), int64(1<<61), int64(1<<62))
	f.Add(int64(1_000_000_000), int64(time.Second), int64(0), int64(math.MaxInt64), int64(0), int64(1<<60), int64(math.MaxInt32))
	f.Fuzz(func(t *testing.T, count, period, burst, wait, queue, now, n int64) {
		r := per(count, time.Duration(period))
		p := shapeParameters{
			rate: r, burstAt: r, burst: burst, slack: burst,
			queue: queue, delayAfter: queue, wait: time.Duration(wait),
		}
		now, n = now&(1<<61-1), n&math.MaxInt64
		for name, make := range shapes {
			g, err := make(p)
			if err != nil {
				continue
			}
			tat := now
			for range 4 {
				next, v := g.Decide(tat, now, n)
				require.GreaterOrEqual(t, next, tat, name)
				require.True(t, g.Plausible(next, now), name)
				require.LessOrEqual(t, v.Remaining, v.Limit, name)
				require.GreaterOrEqual(t, v.Remaining, int64(0), name)
				for _, x := range spans(v) {
					require.GreaterOrEqual(t, x, int64(0), name)
				}
				if v.Allowed && n > 0 && next-tat < n { // an emission is a step at least
					t.Fatalf("%s: %d units were charged %d ticks", name, n, next-tat)
				}
				tat = next
			}
		}
	})
}
