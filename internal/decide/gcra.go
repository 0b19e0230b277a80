package decide

import (
	"fmt"
	"math"
	"time"
)

// GCRA is the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0): the
// token bucket, the leaky bucket as a meter and as a queue. The state is one
// word, the theoretical arrival time TAT: the instant at which the bucket is
// full again. A TAT in the past means the same as none.
//
// A late reading of the clock can only under-admit: the TAT holds the latest
// instant that was charged, so going back in time makes the debt look larger.
// Keeping (tokens, last update) instead mints tokens when the clock goes back.
type GCRA struct {
	emission int64   // T: ticks that one unit costs
	burst    int64   // B: most units at once
	depth    int64   // B*T: debt beyond which there is a delay
	maxWait  int64   // longest delay that is admitted
	maxCost  int64   // largest cost that can ever be admitted
	maxDebt  int64   // largest plausible debt
	spent    int64   // debt at which no unit remains
	unit     divisor // T
	forward  bool    // a charge waits for the debt before it, not for its own
}

// NewGCRA makes a bucket of burst units in which a charge waits at most wait,
// for its own debt too. The error names field and value.
func NewGCRA(r Rate, burst int64, wait time.Duration) (*GCRA, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	switch {
	case burst < 1:
		return nil, fmt.Errorf("burst is %d, want 1 or more", burst)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	}
	depth, err := r.span("burst", burst)
	if err != nil {
		return nil, err
	}
	return ownDebt(r, depth, r.Ticks(wait)), nil
}

// ownDebt makes a bucket of depth ticks in which a charge waits at most wait
// ticks for its own debt too.
func ownDebt(r Rate, depth, wait int64) *GCRA {
	t := r.emission()
	wait = min(wait, max(r.maxSpan()-depth, 0))
	return &GCRA{
		emission: t, unit: newDivisor(t),
		burst: depth / t, depth: depth, spent: depth,
		maxWait: wait, maxCost: (depth + wait) / t, maxDebt: 2*depth + wait,
	}
}

// earlierDebt makes a bucket in which a charge waits at most wait ticks for the
// debt before it, and leaves its own debt to the next one. An idle bucket saves
// depth ticks, and one unit more than that starts at once.
func earlierDebt(r Rate, depth, wait int64) *GCRA {
	g, most := ownDebt(r, depth, wait), r.maxSpan()
	g.forward = true
	g.spent = depth + g.emission
	g.burst = g.spent / g.emission
	g.maxCost = most / g.emission
	g.maxDebt = max(depth, most) + most // at least depth + wait + maxCost*T
	return g
}

// Limit is the largest cost that fits at once.
func (g *GCRA) Limit() int64 { return g.burst }

// Empty is the TAT at now of a bucket that holds no units and owes none.
func (g *GCRA) Empty(now int64) int64 { return now + g.depth }

// Decide charges n units, at most with a delay.
func (g *GCRA) Decide(tat, now, n int64) (int64, Verdict) {
	next, over := g.charge(min(tat, addSaturated(now, g.maxDebt)), now, n)
	v := g.explain(next, now, n, over)
	if !v.Allowed || n == 0 {
		return tat, v
	}
	return next, v
}

// Admit charges n units if they fit without a delay.
func (g *GCRA) Admit(tat, now, n int64) (int64, bool) {
	next, over := g.charge(tat, now, n)
	if over > 0 {
		return tat, n == 0
	}
	return next, true
}

// charge returns the next TAT and how far the charge overshoots the bucket: up
// to 0 fits now, up to maxWait fits after that delay. Beyond is a denial, which
// returns tat itself.
func (g *GCRA) charge(tat, now, n int64) (next, over int64) {
	if n > g.maxCost {
		return tat, never
	}
	cost := n * g.emission
	if next = max(tat, now) + cost; next < 0 {
		return tat, never // past the end of the clock
	}
	over = next - now - g.depth
	if g.forward {
		over -= cost
	}
	if over > g.maxWait || n == 0 {
		return tat, over
	}
	return next, over
}

// never is the overshoot of a cost that can never fit.
const never = math.MaxInt64

// explain turns the result of charge into a Verdict.
func (g *GCRA) explain(next, now, n, over int64) (v Verdict) {
	debt := debt(next, now)
	left := g.unit.quo(max(g.spent-debt, 0))
	v.Limit, v.Remaining, v.ResetAfter = g.burst, left, debt
	if left < g.burst {
		v.NextAfter = debt - g.spent + (left+1)*g.emission
	}
	switch {
	case over <= g.maxWait || n == 0:
		v.Allowed = true
		if n > 0 {
			v.Delay = max(over, 0)
		}
	case over == never:
		v.Never = true
	default:
		v.RetryAfter = over - g.maxWait
	}
	return v
}

// debt is the span until a bucket with that TAT is full again.
func debt(tat, now int64) int64 { return max(tat-now, 0) }

// Charge describes the charge that led to tat. It drains from when the admitted
// work starts, or, if that comes first, from when its own ticks do.
func (g *GCRA) Charge(tat, now, n int64, v Verdict) Charge {
	start := min(now+v.Delay, tat-n*g.emission)
	return Charge{N: n, At: start, State: [2]int64{tat, g.emission}}
}

// MaxRefund is the most ticks that Refund gives back for n units of c.
func (g *GCRA) MaxRefund(c Charge, n int64) int64 {
	emission := c.State[1]
	return min(n, g.maxDebt/emission) * emission
}

// Refund gives n units of c back, at most what c still weighs. shift is how
// many ticks were given back to this TAT since c was charged, or more. The
// second result is how many ticks it gives back. The reading now must be taken
// after tat was read: an older one would give back what has drained since.
func (g *GCRA) Refund(tat int64, c Charge, now, n, shift int64) (int64, int64) {
	given := min(g.MaxRefund(c, n), weight(c, g.MaxRefund(c, c.N), shift, now), tat-now)
	if given <= 0 {
		return tat, 0
	}
	return tat - given, given
}

// weight returns the ticks at now that are left of c, which cost that many. c
// drains last of all that was charged up to its TAT, less what others were
// given back. And it counts as whole until its own start. The larger of the two
// makes the order in which delays are canceled not matter.
//
// Giving back the whole cost instead, however late, mints: the bucket has
// refilled meanwhile and the units would be spent twice.
func weight(c Charge, cost, shift, now int64) int64 {
	left := max(c.State[0]-shift-now, cost-max(now-c.At, 0))
	return min(max(left, 0), cost)
}

// ForceCharge charges n units more to c, up to the largest debt. It reports a
// cut too when a unit costs fewer ticks than it did for c: Refund gives back
// the ticks of c for each.
func (g *GCRA) ForceCharge(tat int64, c Charge, now, n int64) (int64, bool) {
	debt := debt(tat, now)
	room := max(g.maxDebt-debt, 0)
	units := room / g.emission
	cut := n > units || g.emission < c.State[1]
	if n <= units {
		room = n * g.emission
	}
	if room == 0 {
		return tat, cut
	}
	return addSaturated(now, debt+room), cut
}

// Plausible reports whether these parameters and a clock that read at most now
// can have written tat.
func (g *GCRA) Plausible(tat, now int64) bool { return tat-now <= g.maxDebt }

// Clamp lowers an implausible TAT to the largest plausible one.
func (g *GCRA) Clamp(tat, now int64) (int64, bool) {
	if g.Plausible(tat, now) {
		return tat, false
	}
	return now + g.maxDebt, true
}

// Adopt lowers a TAT to that of a key that spends the whole burst at now and
// waits as long as any may. A bucket in which a charge waits for earlier debt
// keeps all of it.
func (g *GCRA) Adopt(tat, now int64) (int64, bool) {
	if g.forward || tat-now <= g.depth+g.maxWait {
		return g.Clamp(tat, now)
	}
	return now + g.depth + g.maxWait, true
}
