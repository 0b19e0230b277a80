package algo

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// randomSpec covers rates from 1 a day to 1e9 a second and all options of the
// one-word shapes.
func randomSpec(rnd *rand.Rand) Spec {
	r := Rate{1 + rnd.Int64N(1<<rnd.IntN(20)), time.Duration(1 + rnd.Int64N(1<<(1+rnd.IntN(46))))}
	flip := func() bool { return rnd.IntN(2) == 0 }
	s := Spec{Rate: r, Slack: rnd.Int64N(1 << rnd.IntN(6)), NoDelay: flip()}
	for _, o := range []Option{
		Burst(rnd.Int64N(1 << rnd.IntN(12))), MaxWait(time.Duration(rnd.Int64N(1e10))),
		MaxQueue(rnd.Int64N(20)), DelayAfter(rnd.Int64N(8)),
	} {
		if flip() {
			s.write(o)
		}
	}
	return s
}

// randomShape keeps asking until the shape accepts.
func randomShape(rnd *rand.Rand, to bucketParams) *gcra {
	for {
		s := randomSpec(rnd)
		if g, err := to(s, s.Rate); err == nil {
			return g
		}
	}
}

var shapes = map[string]bucketParams{
	"token and leaky bucket": tokens, "pacer": paced, "nginx": limitReq, "smooth bursty": payForward,
}

// TestStartsUnderJumpingClocks is W1 and W2 for the starts of everything over
// one word: for any sequence of clock readings the starts of a run hold at most
// what fits at once, or one cost that is more, and what the rate lets through
// from the first to the last. A pacer without slack starts n units n*T after
// the start before. A request that pays forward adds its own cost.
func TestStartsUnderJumpingClocks(t *testing.T) {
	n := cases.Count(50_000, 1_000_000)
	for name, to := range shapes {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(31, 32))
			for range n {
				g := randomShape(rnd, to)
				checkStarts(t, g, rnd)
			}
			t.Logf("W2: %d sequences of 12 calls under jumping clocks", n)
		})
	}
}

func checkStarts(t *testing.T, g *gcra, rnd *rand.Rand) {
	type start struct{ at, cost int64 }
	clock := jumpingClock(rnd, g.emission)
	var starts []start
	var tat int64
	for range 12 {
		now, n := clock(), 1+rnd.Int64N(min(g.most, 4))
		next, over := g.charge(tat, now, n)
		if !g.admits(n, over) {
			if next != tat {
				t.Fatalf("a denial changed the state: %+v, %d to %d", *g, tat, next)
			}
			continue
		}
		tat = next
		starts = append(starts, start{now + max(over, 0), n * g.emission})
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

// TestExactRetryAfter: for every shape, from any state, a denial's RetryAfter
// suffices and a nanosecond less does not; neither does an admission's Delay
// come a nanosecond early.
func TestExactRetryAfter(t *testing.T) {
	for name, to := range shapes {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(33, 34))
			n := cases.Count(50_000, 1_000_000)
			for range n {
				g := randomShape(rnd, to)
				now := rnd.Int64N(1 << 60)
				tat := now + rnd.Int64N(1+min(g.ceiling, 2*(g.depth+g.wait)))
				n := 1 + rnd.Int64N(min(g.most, 1<<20))
				_, d := g.decide(tat, now, n)
				if d.Allowed {
					if d.Delay > 0 && !startsAt(g, tat, now, n, d.Delay) {
						t.Fatalf("%+v: delay %v of %d at debt %d", *g, d.Delay, n, tat-now)
					}
					continue
				}
				at := now + toTicks(d.RetryAfter)
				if _, ok := g.decide(tat, at, n); !ok.Allowed {
					t.Fatalf("%+v: %d is denied at its RetryAfter %v", *g, n, d.RetryAfter)
				}
				if _, early := g.decide(tat, at-ticksPerNano, n); early.Allowed {
					t.Fatalf("%+v: %d is admitted a nanosecond before %v", *g, n, d.RetryAfter)
				}
			}
			t.Logf("U2: %d decisions of a bucket", n)
		})
	}
}

// startsAt reports whether n units would start at once after delay, and not a
// nanosecond earlier.
func startsAt(g *gcra, tat, now, n int64, delay time.Duration) bool {
	at := now + toTicks(delay)
	_, due := g.charge(tat, at, n)
	_, early := g.charge(tat, at-ticksPerNano, n)
	if n*g.emission > g.depth && !g.forward { // it waits for itself: nothing to compare with later
		return true
	}
	return due <= 0 && early > 0
}

// TestShapesLinearizable is L1 for the other shapes of the word: four
// goroutines, ten calls each, readings that jump, the pure decide as the model.
func TestShapesLinearizable(t *testing.T) {
	interleaved(t)
	n := cases.Count(2_500, 50_000) // each of four
	rnd := rand.New(rand.NewPCG(35, 36))
	for name, make := range map[string]func() *bucket{
		"leaky bucket":  func() *bucket { return &Must(NewLeakyBucket(PerSecond(10), Burst(5))).bucket },
		"pacer":         func() *bucket { return &Must(NewPacer(PerSecond(10), Slack(1), MaxQueue(4))).bucket },
		"nginx":         func() *bucket { return &Must(NewNginx(PerSecond(10), Burst(5), DelayAfter(2))).bucket },
		"smooth bursty": func() *bucket { return &Must(NewSmoothBursty(PerSecond(10), MaxWait(time.Second))).bucket },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for i := range n {
					b := make()
					b.words.clock.start = time.Now().Add(-time.Hour)
					key, born := [...]string{"", "k"}[i%2], b.words.clock.now()
					history := jumpingHistory(b, key, rnd.Uint64())
					ok := porcupine.CheckOperations(gcraModel(b.limit.Load(), born), history)
					require.True(t, ok, "history %d", i)
				}
			})
			t.Logf("L1: %d histories of 4x10 calls", n)
		})
	}
}

// FuzzShapes: no parameters and no state make a shape panic, mint, or turn a
// sum around.
func FuzzShapes(f *testing.F) {
	f.Add(int64(10), int64(time.Second), int64(5), int64(0), int64(0), int64(0), int64(1))
	f.Add(int64(1), int64(maxSpan), int64(1), int64(math.MaxInt64), int64(3), int64(1), int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MaxInt64), int64(-1), int64(math.MaxInt64), int64(1<<61), int64(1<<62))
	f.Add(int64(1_000_000_000), int64(time.Second), int64(0), int64(math.MaxInt64), int64(0), int64(1<<60), int64(math.MaxInt32))
	f.Fuzz(func(t *testing.T, count, period, burst, wait, queue, now, n int64) {
		r := Rate{count, time.Duration(period)}
		s := Spec{Rate: r, Burst: burst, MaxWait: time.Duration(wait), Slack: burst, MaxQueue: queue, DelayAfter: queue}
		now, n = now&(1<<61-1), n&math.MaxInt64
		for name, to := range shapes {
			g, err := to(s, r)
			if err != nil {
				continue
			}
			tat := now
			for range 4 {
				next, d := g.decide(tat, now, n)
				require.GreaterOrEqual(t, next, tat, name)
				require.True(t, g.believable(next, now), name)
				require.LessOrEqual(t, d.Remaining, d.Limit, name)
				require.GreaterOrEqual(t, d.Remaining, int64(0), name)
				for _, x := range []time.Duration{d.Delay, d.RetryAfter, d.NextAfter, d.ResetAfter} {
					require.GreaterOrEqual(t, x, time.Duration(0), name)
				}
				if d.Allowed && n > 0 && next-tat < n { // an emission is 64 ticks at least
					t.Fatalf("%s: %d units were charged %d ticks", name, n, next-tat)
				}
				tat = next
			}
		}
	})
}
