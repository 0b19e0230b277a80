package algo

import (
	"fmt"
	"math"
	"time"
)

// ramp is the published arithmetic of Guava's SmoothWarmingUp, in float64
// ticks. Stored permits stand for how cold the limiter is:
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
// What is not stored costs s. An idle limiter moves to the right by most in one
// warm-up.
type ramp struct {
	stable    float64 // s: ticks a permit costs when warm
	warmup    float64 // ticks
	threshold float64 // stored permits from which on they cost more
	slope     float64 // by how many ticks, for each permit
	cool      float64 // ticks in which an idle limiter stores one permit
	wait      int64   // longest Delay that is admitted
	most      int64   // largest cost that is admitted
}

// warmth is the state of one key: free is the instant at which everything that
// was admitted is paid for, cold the one at which the limiter will be cold if
// nothing comes. So the permits not stored are worth cold - free, which a
// change of the rate leaves as it is: stored permits scale with their most. A
// key that is not there is cold.
type warmth struct {
	cold, free int64
	resets     int64 // a charge before the last one cannot be given back
	until      int64 // and weighs nothing from here on: resets may be forgotten
}

// expiry is the instant from which w says nothing.
func (w warmth) expiry() int64 { return max(w.cold, w.until) }

const (
	defaultColdFactor = 3

	// rampSpan bounds wait, warm-up and cost each, so that their sum stays
	// within 2*maxSpan.
	rampSpan = maxSpan / 2
	// rampMost leaves the other half of a word of the handle.
	rampMost = math.MaxInt32
)

func newRamp(r Rate, warmup, wait time.Duration, coldFactor float64) (*ramp, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	switch {
	case warmup <= 0 || warmup > rampSpan:
		return nil, fmt.Errorf("warmup is %v, want 0 to %v", warmup, rampSpan)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	}
	s, w := float64(r.emission()), float64(toTicks(warmup))
	above := 2 * w / (s + coldFactor*s)
	threshold := w / s / 2
	return &ramp{
		stable: s, warmup: w, threshold: threshold,
		slope: (coldFactor*s - s) / above,
		cool:  w / (threshold + above),
		wait:  min(toTicks(wait), toTicks(rampSpan)),
		most:  min(toTicks(rampSpan)/r.emission(), rampMost),
	}, nil
}

// decide is the algorithm: what becomes of w when n permits are asked for at
// now.
func (r *ramp) decide(w warmth, now, n int64) (next warmth, d Decision) {
	next, over := r.charge(w, now, n)
	r.explain(&d, next, now, n, over)
	return next, d
}

// charge returns the next state and how long the caller waits for what is owed
// already: up to r.wait is an admission, more a denial, which returns w itself.
func (r *ramp) charge(w warmth, now, n int64) (next warmth, over int64) {
	over = max(w.free-now, 0)
	switch {
	case n > r.most:
		return w, never
	case n == 0 || over > r.wait:
		return w, over
	}
	if next = r.spend(w, now, n); next.cold < 0 {
		return w, never // past the end of the clock
	}
	return next, over
}

// spend takes n permits, at most r.most, whatever is owed.
func (r *ramp) spend(w warmth, now, n int64) warmth {
	free := max(w.free, now)
	gap := max(w.cold-free, 0)
	cost, taken := r.price(gap, n)
	free += cost
	w.cold, w.free = free+min(gap+taken, int64(r.warmup)), free
	return w
}

// price is the time that n permits cost when permits worth gap are missing,
// rounded up but for the noise of the arithmetic, and the worth of those that
// are taken from the store.
func (r *ramp) price(gap, n int64) (cost, taken int64) {
	stored := max(r.warmup-float64(gap), 0) / r.cool
	take := min(stored, float64(n))
	from := max(stored-r.threshold, 0) // permits on the slope
	above := min(from, take)           // those of them that are taken
	sloped := above * (2*r.stable + r.slope*(2*from-above)) / 2
	const noise = 1e-14
	ticks := sloped + (float64(n)-above)*r.stable
	return int64(math.Ceil(ticks * (1 - noise))), int64(math.Round(take * r.cool))
}

// explain turns the result of charge into a Decision. One permit starts at
// once when nothing is owed, and its price is owed then.
func (r *ramp) explain(d *Decision, next warmth, now, n, over int64) {
	owed := max(next.free-now, 0)
	d.Limit = 1
	d.ResetAfter = toDuration(owed)
	d.NextAfter = d.ResetAfter
	if owed == 0 {
		d.Remaining = 1
	}
	switch {
	case n == 0:
		d.Allowed = true
	case over == never:
		d.Reason, d.RetryAfter = Never, Forever
	case over > r.wait:
		d.Reason, d.RetryAfter = Quota, toDuration(over-r.wait)
	default:
		d.Allowed, d.Delay = true, toDuration(over)
	}
}

// undo gives back cost ticks, and taken for the store, as far as they are
// still owed at now.
func (w warmth) undo(now, cost, taken int64) warmth {
	free := max(w.free, now)
	gap := max(w.cold-free, 0)
	free = max(free-cost, now)
	w.cold, w.free = free+max(gap-taken, 0), free
	return w
}
