package decide

import (
	"fmt"
	"math"
	"time"
)

// GCRA is the generic cell rate algorithm (ITU-T I.371, ATM Forum TM 4.0): the token bucket, the
// leaky bucket as a meter and as a queue. The state is one word, the theoretical arrival time TAT:
// the instant at which the bucket is full again. A TAT in the past is equivalent to none.
//
// A late reading of the clock can only under-admit: the TAT holds the latest instant that was
// charged, so going back in time makes the debt look larger. A state of (tokens, last update) would
// create tokens when the clock goes back.
type GCRA struct {
	emission int64   // T: ticks that one unit costs
	burst    int64   // B: most units at once
	depth    int64   // B*T: debt beyond which there is a delay
	maxWait  int64   // longest delay that is admitted
	maxCost  int64   // largest cost that can ever be admitted
	maxDebt  int64   // largest plausible debt
	spent    int64   // debt at which no unit remains
	unit     divisor // T
	fill     time.Duration
	forward  bool  // a charge waits for the debt before it, not for its own
	settling int64 // until then, no more debt than settled is plausible; see Succeed
	settled  int64
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
		fill: r.fillTime(depth / t),
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
	g.fill = r.fillTime(g.burst)
	g.maxCost = most / g.emission
	g.maxDebt = max(depth, most) + most // at least depth + wait + maxCost*T
	return g
}

// Succeed returns g as the limit that replaces old at now. Keys keep their debt, as time. But if g
// is faster or has the larger burst, debt is cut to the largest under g: of a key that has just
// spent the whole burst and waits as long as it may. The cut applies while debt of old may exist. A
// bucket in which a charge waits for earlier debt keeps all of it.
func (g *GCRA) Succeed(old *GCRA, now int64) *GCRA {
	next := *g
	switch fits := g.depth + g.maxWait; {
	case g.forward:
	case g.emission < old.emission || g.burst > old.burst:
		next.settling, next.settled = max(old.settling, addSaturated(now, old.maxDebt)), fits
	case now < old.settling: // debt that fit since the limit was raised stays
		next.settling, next.settled = old.settling, min(max(fits, old.settled), g.maxDebt)
	}
	return &next
}

// plausibleDebt returns the largest plausible debt at now.
func (g *GCRA) plausibleDebt(now int64) int64 {
	if now < g.settling {
		return g.settled
	}
	return g.maxDebt
}

// Limit returns the largest cost that fits at once.
func (g *GCRA) Limit() int64 { return g.burst }

// FillTime returns the time in which Limit units come back, at the requested rate.
func (g *GCRA) FillTime() time.Duration { return g.fill }

// Empty returns the TAT at now of a bucket without units and without debt.
func (g *GCRA) Empty(now int64) int64 { return now + g.depth }

// Answer charges n units, at most with a delay. tat must be plausible.
func (g *GCRA) Answer(tat, now, n int64) (next int64, a Answer, q Quota) {
	next, over := g.charge(tat, now, n)
	debt := debt(next, now)
	q.Limit, q.ResetAfter = g.burst, debt
	q.Remaining = g.unit.quo(max(g.spent-debt, 0))
	if q.Remaining < g.burst {
		q.NextAfter = debt - g.spent + (q.Remaining+1)*g.emission
	}
	switch {
	case n == 0:
		a.Allowed = true
	case over <= g.maxWait:
		a.Allowed, a.Delay = true, max(over, 0)
	case over == never:
		a.Never = true
	default:
		a.RetryAfter = over - g.maxWait
	}
	return next, a, q
}

// Peek is Answer without the charge.
func (g *GCRA) Peek(tat, now, n int64) (Answer, Quota) {
	_, a, _ := g.Answer(tat, now, n)
	_, _, q := g.Answer(tat, now, 0)
	return a, q
}

// Admit charges n units if they fit without a delay.
func (g *GCRA) Admit(tat, now, n int64) (int64, bool) {
	next, over := g.charge(tat, now, n)
	if over > 0 {
		return tat, n == 0
	}
	return next, true
}

// charge returns the next TAT and how far the charge overshoots the bucket: up to 0 fits now, up to
// maxWait fits after that delay. A larger overshoot is a denial, which returns tat itself.
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

// debt returns the span until a bucket with this TAT is full again.
func debt(tat, now int64) int64 { return max(tat-now, 0) }

// Charge describes the charge that led to tat. It drains from the start of the work, or from when
// its own ticks begin if that is earlier.
func (g *GCRA) Charge(tat, now, n, delay int64) Charge {
	if n == 0 { // units of a later settlement drain from now on
		return Charge{At: now, A: max(tat, now), B: g.emission}
	}
	start := min(now+delay, tat-n*g.emission)
	return Charge{N: n, At: start, A: tat, B: g.emission}
}

// MaxRefund returns the most ticks that Refund gives back for n units of c.
func (g *GCRA) MaxRefund(c Charge, n int64) int64 {
	if c.B == 0 { // nothing was charged
		return 0
	}
	return min(n, g.maxDebt/c.B) * c.B
}

// Refund gives n units of c back, at most c's remaining weight. shift is at least the number of
// ticks given back to this TAT since c was charged. The second result is the number of refunded
// ticks. now must be read after tat: an older reading would give back units that have drained
// since.
func (g *GCRA) Refund(tat int64, c Charge, now, n, shift int64) (int64, int64) {
	given := min(g.MaxRefund(c, n), weight(c, g.MaxRefund(c, c.N), shift, now), tat-now)
	if given <= 0 {
		return tat, 0
	}
	return tat - given, given
}

// weight returns the remaining ticks of c at now; cost is its original number. c drains after all
// earlier charges, up to its TAT minus their refunds, and counts in full until its own start. The
// larger of the two makes the order of cancellations irrelevant.
//
// A late refund of the whole cost would create units: the bucket has refilled meanwhile, so they
// would be spent twice.
func weight(c Charge, cost, shift, now int64) int64 {
	left := max(c.A-shift-now, cost-max(now-c.At, 0))
	return min(max(left, 0), cost)
}

// ForceCharge charges n units more to c, up to the largest debt. It also reports a cut if a unit
// costs fewer ticks than for c, because Refund gives back c's ticks for each.
func (g *GCRA) ForceCharge(tat int64, c Charge, now, n int64) (int64, bool) {
	debt := debt(tat, now)
	room := max(g.plausibleDebt(now)-debt, 0)
	units := room / g.emission
	cut := n > units || g.emission < c.B
	if n <= units {
		room = n * g.emission
	}
	if room == 0 {
		return tat, cut
	}
	return addSaturated(now, debt+room), cut
}

// Reset returns the TAT of a full bucket.
func (g *GCRA) Reset(tat, now int64) int64 { return min(tat, now) }

// Plausible reports whether these parameters and a clock that read at most now
// can have written tat.
func (g *GCRA) Plausible(tat, now int64) bool { return tat-now <= g.plausibleDebt(now) }

// Clamp lowers an implausible TAT to the largest plausible one.
func (g *GCRA) Clamp(tat, now int64) (int64, bool) {
	if g.Plausible(tat, now) {
		return tat, false
	}
	return now + g.plausibleDebt(now), true
}

// Expiry returns the TAT itself.
func (g *GCRA) Expiry(tat, _ int64) int64 { return tat }
