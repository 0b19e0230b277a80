package decide

import (
	"fmt"
	"math"
	"time"
)

// Warmup is the published arithmetic of Guava's SmoothWarmingUp, in float64
// ticks. Stored permits measure how cold the limiter is:
//
//	          ^ ticks a permit costs
//	          |
//	cold*s    +                  /
//	          |                /.
//	          |              /  .   the area under the slope is the warm-up,
//	          |            /    .   that left of the threshold half of it
//	s         +----------/      .
//	          |          .      .
//	          0----------+------+---> permits stored
//	               threshold   most
//
// Taking permits moves from right to left and costs the area that is passed.
// Permits that are not stored cost s. An idle limiter moves to the right by most in one
// warm-up.
type Warmup struct {
	warmupCurve
	maxWait int64 // longest delay that is admitted
	maxCost int64 // largest cost that is admitted
	maxDebt int64 // debt to which nothing is added
}

// warmupCurve is the cost of permits.
type warmupCurve struct {
	stable    float64 // s: ticks a permit costs when warm
	warmup    float64 // ticks
	threshold float64 // stored permits from which on they cost more
	slope     float64 // by how many ticks, for each permit
	cool      float64 // ticks in which an idle limiter stores one permit
}

// WarmupState is the state of one key: free is when the cost of all admissions has drained, cold
// when the limiter will be cold without further requests. So the permits that are not stored are
// worth cold - free at any rate: stored permits scale with their maximum. The zero state is cold.
type WarmupState struct {
	cold, free int64
	taken      int64 // worth of the stored permits that the last charge took
}

// WarmupDebt returns the state of a key with debt until free, whose permits worth gap are not stored then.
func WarmupDebt(free, gap int64) *WarmupState { return &WarmupState{cold: free + gap, free: free} }

// WarmupParts returns the end of the debt of s, now if it has none, and the worth of the permits that are not
// stored then.
func WarmupParts(s *WarmupState, now int64) (free, gap int64) {
	free = max(s.free, now)
	return free, max(s.cold-free, 0)
}

// Inherit copies from.
func (s *WarmupState) Inherit(from *WarmupState) { *s = *from }

const (
	// maxColdFactor keeps the arithmetic of a [Warmup] far from the ends of
	// float64.
	maxColdFactor = 1e6

	// maxWarmup bounds wait, warm-up and cost of a [Warmup] each, so that their
	// sum stays within twice MaxSpan.
	maxWarmup = MaxSpan / 2

	// maxPermits bounds the cost of a charge: that many are exact in float64.
	maxPermits = math.MaxInt32
)

// NewWarmup validates; the error names field and value. The wait of a charge,
// for earlier debt only, is at most wait, and maxWarmup.
func NewWarmup(r Rate, warmup, wait time.Duration, coldFactor float64) (*Warmup, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	switch {
	case warmup <= 0 || warmup > maxWarmup:
		return nil, fmt.Errorf("warmup is %v, want 0 to %v", warmup, maxWarmup)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	case !(coldFactor > 1 && coldFactor <= maxColdFactor):
		return nil, fmt.Errorf("cold factor is %v, want more than 1, at most %v", coldFactor, float64(maxColdFactor))
	}
	s, w := float64(r.emission()), float64(r.Ticks(warmup))
	above := 2 * w / (s + coldFactor*s)
	threshold := w / s / 2
	most := r.Ticks(maxWarmup)
	p := &Warmup{
		warmupCurve: warmupCurve{
			stable: s, warmup: w, threshold: threshold,
			slope: (coldFactor*s - s) / above,
			cool:  w / (threshold + above),
		},
		maxWait: min(r.Ticks(wait), most),
		maxCost: min(most/r.emission(), maxPermits),
	}
	p.maxDebt = p.maxWait + most
	return p, nil
}

// Limit returns 1: a permit starts at once without debt.
func (p *Warmup) Limit() int64 { return 1 }

// Emission returns how many ticks a permit costs when warm.
func (p *Warmup) Emission() int64 { return int64(p.stable) }

// Params returns the parameters of p, for a script that makes the same decisions. Depth is the warm-up.
func (p *Warmup) Params() Params {
	return Params{p.Emission(), int64(p.warmup), p.maxWait, p.maxCost, p.maxDebt}
}

// Answer charges n permits if the wait for the earlier debt is short enough.
func (p *Warmup) Answer(s *WarmupState, now, n int64) (*WarmupState, Answer, Quota) {
	over := p.charge(s, now, n, p.maxWait)
	return s, p.answer(n, over), p.quota(s, now)
}

// Peek is Answer without the charge.
func (p *Warmup) Peek(s *WarmupState, now, n int64) (Answer, Quota) {
	next := *s
	over := p.charge(&next, now, n, p.maxWait)
	return p.answer(n, over), p.quota(s, now)
}

// Admit charges n permits if there is no debt.
func (p *Warmup) Admit(s *WarmupState, now, n int64) (*WarmupState, bool) {
	return s, p.charge(s, now, n, 0) <= 0 || n == 0
}

// charge charges n permits unless the wait for the earlier debt, which it
// returns, is longer than wait.
func (p *Warmup) charge(s *WarmupState, now, n, wait int64) (over int64) {
	over = max(s.free-now, 0)
	switch {
	case n > p.maxCost:
		return never
	case n == 0 || over > wait:
		return over
	}
	next := *s
	if p.take(&next, now, n); next.cold < 0 {
		return never // past the end of the clock
	}
	*s = next
	return over
}

// take charges n permits, at most maxCost, at any debt.
func (p *Warmup) take(s *WarmupState, now, n int64) {
	free, gap := WarmupParts(s, now)
	cost, taken := p.price(gap, n)
	free += cost
	gone := min(gap+taken, int64(p.warmup))
	*s = WarmupState{cold: free + gone, free: free, taken: gone - gap}
}

// price returns the time that n permits cost when permits worth gap are missing, rounded up except
// for numerical noise, and the worth of those taken from the store.
func (p *warmupCurve) price(gap, n int64) (cost, taken int64) {
	stored := max(p.warmup-float64(gap), 0) / p.cool
	take := min(stored, float64(n))
	from := max(stored-p.threshold, 0) // permits on the slope
	above := min(from, take)           // the taken ones among them
	sloped := above * (2*p.stable + p.slope*(2*from-above)) / 2
	const noise = 1e-14
	ticks := sloped + (float64(n)-above)*p.stable
	return int64(math.Ceil(ticks * (1 - noise))), int64(math.Round(take * p.cool))
}

// answer turns the wait for earlier debt into an Answer.
func (p *Warmup) answer(n, over int64) Answer {
	switch {
	case n == 0:
		return Answer{Allowed: true}
	case over == never:
		return Answer{Never: true}
	case over > p.maxWait:
		return Answer{RetryAfter: over - p.maxWait}
	}
	return Answer{Allowed: true, Delay: over}
}

// quota describes the remaining permits. One permit starts at once when there is no
// debt, and its price becomes debt.
func (p *Warmup) quota(s *WarmupState, now int64) Quota {
	debt := max(s.free-now, 0)
	q := Quota{Limit: 1, NextAfter: debt, ResetAfter: debt}
	if debt == 0 {
		q.Remaining = 1
	}
	return q
}

// Charge describes the last charge, of n permits: its cost, the part of it taken
// from the store (less than 2, in units of 2^-31, rounded up), and n.
func (p *Warmup) Charge(s *WarmupState, now, n, delay int64) Charge {
	start := now + delay
	if n == 0 {
		return Charge{At: start}
	}
	cost := s.free - start
	return Charge{N: n, At: start, A: cost, B: n<<32 | min(ratioUp(1<<31, s.taken, cost), math.MaxUint32)}
}

// MaxRefund returns 0: a refund counts from the start of its own charge only.
func (p *Warmup) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n permits of c back, at most their remaining weight: a charge begins to drain when
// its work starts. The second result is in ticks. now must be read under the lock.
func (p *Warmup) Refund(s *WarmupState, c Charge, now, n, _ int64) (*WarmupState, int64) {
	weight, back, taken := p.Weight(c, n)
	left := weight - max(now-c.At, 0)
	if left <= 0 {
		return s, 0
	}
	back = min(left, back)
	free, gap := WarmupParts(s, now)
	s.free = max(free-back, now)
	s.cold = s.free + max(gap-ratioUp(back, taken, 1<<31), 0)
	return s, free - s.free
}

// Weight returns how many ticks c weighs when its work starts, how many of them n permits weigh, and the part of
// the weight that was stored, in units of 2^-31. A charge of 0 units weighs nothing, because the price of a
// later settlement is unknown.
func (p *Warmup) Weight(c Charge, n int64) (weight, of, stored int64) {
	cost, first := c.A, c.B>>32
	if first == 0 {
		return 0, 0, 0
	}
	return ratio(cost, min(c.N, first), first), ratio(cost, firstUnits(c.N-n, c.N, first), first), c.B & math.MaxUint32
}

// Least returns the least cost of n more permits: refunded ones cost at least their first price.
func (p *Warmup) Least(c Charge, n int64) int64 {
	if first := c.B >> 32; first > 0 { // 0 for a charge that began as a peek
		return ratio(c.A, firstUnits(c.N, c.N+n, first), first) + 1
	}
	return 0
}

// firstUnits returns how many of the units from..to are among the first charged.
func firstUnits(from, to, first int64) int64 { return min(to, first) - min(from, first) }

// ForceCharge charges n permits more. A permit's price depends on when it is taken. So that
// settling up and down gains nothing, permits beyond the first cost are not refunded later, and
// refunded ones cost at least their first price again.
func (p *Warmup) ForceCharge(s *WarmupState, c Charge, now, n int64) (*WarmupState, bool) {
	if n <= 0 || s.free-now > p.maxDebt {
		return s, false // deep in debt: more would only overflow
	}
	free := max(s.free, now)
	p.take(s, now, min(n, p.maxCost))
	if short := p.Least(c, n) - (s.free - free); short > 0 {
		s.free, s.cold = s.free+short, s.cold+short
	}
	return s, false
}

// Plausible returns true: as in Guava, debts stay under every rate.
func (p *Warmup) Plausible(*WarmupState, int64) bool { return true }

// Clamp changes nothing.
func (p *Warmup) Clamp(s *WarmupState, _ int64) (*WarmupState, bool) { return s, false }

// Reset returns the state of a cold key without debt.
func (p *Warmup) Reset(s *WarmupState, _ int64) *WarmupState {
	*s = WarmupState{}
	return s
}

// Expiry returns the instant from which s is equivalent to the zero state.
func (p *Warmup) Expiry(s *WarmupState, _ int64) int64 { return s.cold }
