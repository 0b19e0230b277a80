package algo

import (
	"fmt"
	"math"
	"time"
)

// gcra is the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0)
// with immutable parameters. All its state is one word, the theoretical
// arrival time TAT: the instant at which the bucket is full again. A TAT that
// lies in the past is the same as none.
//
// A late reading of the clock can only under-admit: the TAT remembers the
// latest instant that was charged, so going back in time makes the debt look
// larger. Keeping (tokens, last update) instead mints tokens when the clock
// goes back.
type gcra struct {
	emission int64         // T: ticks that one unit costs
	burst    int64         // B: most units at once
	depth    int64         // B*T: debt beyond which there is a delay
	wait     int64         // longest Delay that is admitted
	most     int64         // largest cost that can ever be admitted
	ceiling  int64         // largest debt that is believed
	room     int64         // debt at which no unit remains
	window   time.Duration // the time that burst units take at the rate that was asked for
	unit     divisor       // T, for units
	forward  bool          // a charge waits for the debt before it, not for its own
}

// newGCRA makes a bucket of burst units in which a charge waits for its own
// debt too. It validates; the error names field and value.
func newGCRA(r Rate, burst int64, wait time.Duration) (*gcra, error) {
	if err := r.validate(); err != nil {
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
	return ownDebt(r, depth, toTicks(wait)), nil
}

// ownDebt makes the parameters of a bucket of depth ticks, as span has it, in
// which a charge waits at most wait ticks for its own debt too.
func ownDebt(r Rate, depth, wait int64) *gcra {
	t := r.emission()
	g := &gcra{emission: t, burst: depth / t, depth: depth, room: depth}
	g.wait = min(wait, max(toTicks(maxSpan)-depth, 0))
	g.most = (depth + g.wait) / t
	g.window = r.timeFor(g.burst)
	g.ceiling = 2*depth + g.wait
	g.unit = newDivisor(t)
	return g
}

// earlierDebt makes the parameters of a bucket in which a charge waits at most
// wait ticks for the debt before it, and leaves its own to those who come
// after. An idle bucket saves up depth ticks, as span has it. One unit more
// than that starts at once, so that is what callers are told.
func earlierDebt(r Rate, depth, wait int64) *gcra {
	g := ownDebt(r, depth, wait)
	g.forward = true
	g.room = depth + g.emission
	g.burst = g.room / g.emission
	g.window = r.timeFor(g.burst)
	g.most = toTicks(maxSpan) / g.emission
	g.ceiling = max(depth, toTicks(maxSpan)) + toTicks(maxSpan) // depth + wait + most*T at the largest
	return g
}

// decide is the algorithm: what becomes of tat when n units are asked for at
// now. It is the body of the compare-and-swap, the model that linearizability
// is checked against and the oracle for the Redis script.
func (g *gcra) decide(tat, now, n int64) (next int64, d Decision) {
	next, over := g.charge(g.heal(tat, now), now, n)
	g.explain(&d, next, now, n, over)
	return next, d
}

// charge returns the next TAT and how far the charge overshoots the bucket:
// up to 0 fits now, up to g.wait fits after that delay, beyond is a denial,
// which returns tat itself. The TAT must be believable.
func (g *gcra) charge(tat, now, n int64) (next, over int64) {
	if n > g.most {
		return tat, never
	}
	if next = max(tat, now) + n*g.emission; next < 0 {
		return tat, never // past the end of the clock
	}
	over = next - now - g.depth
	if g.forward {
		over -= n * g.emission
	}
	if over > g.wait || n == 0 {
		return tat, over
	}
	return next, over
}

// never is the overshoot of a cost that can never fit.
const never = math.MaxInt64

// admits reports whether the result of charge is an admission.
func (g *gcra) admits(n, over int64) bool { return over <= g.wait || n == 0 }

// believable reports whether a TAT can stem from these parameters and a clock
// that read at most now. One that cannot is left over from a slower limit.
func (g *gcra) believable(tat, now int64) bool { return tat-now <= g.ceiling }

// heal cuts a TAT that is not believable to the largest one that is.
func (g *gcra) heal(tat, now int64) int64 {
	if g.believable(tat, now) {
		return tat
	}
	return now + g.ceiling
}

// debt is how long the bucket needs to be full again.
func debt(tat, now int64) int64 { return max(tat-now, 0) }

// explain turns the result of charge into a Decision.
func (g *gcra) explain(d *Decision, next, now, n, over int64) {
	debt := debt(next, now)
	left := g.units(max(g.room-debt, 0))
	d.Limit = g.burst
	d.Remaining = left
	d.ResetAfter = toDuration(debt)
	if left < g.burst {
		d.NextAfter = toDuration(debt - g.room + (left+1)*g.emission)
	}
	switch {
	case g.admits(n, over):
		d.Allowed = true
		if n > 0 && over > 0 {
			d.Delay = toDuration(over)
		}
	case over == never:
		d.Reason, d.RetryAfter = Never, Forever
	default:
		d.Reason, d.RetryAfter = Quota, toDuration(over-g.wait)
	}
}

// units is x / g.emission for x >= 0.
func (g *gcra) units(x int64) int64 { return g.unit.quo(x) }

// addSaturated adds two non-negative numbers.
func addSaturated(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
