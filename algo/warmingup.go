package algo

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// SmoothWarmingUp is a limiter that gets faster while it is used and cold
// again when it is not, for services that need a while to reach their speed
// (caches to fill, connections to make). It is Guava's
// RateLimiter.create(rate, warmup).
//
// Cold, a permit costs [ColdFactor] times what it does at the rate; over the
// warm-up the cost falls to that of the rate, and it takes an idle limiter one
// warm-up to be cold again. It starts cold. As with [SmoothBursty] a caller
// waits for earlier callers' debt only, at most [MaxWait], and leaves his own
// to the next.
//
// Bound: in any window of length w at most rate*w + n permits start, n being
// the largest cost, for any clock readings and any number of goroutines, as long
// as no admission is canceled or settled to less while later ones wait. RetryAfter
// is exact. Costs above 2^31 - 1, or above what the rate yields in half a year,
// are denied with reason Never.
//
// SetRate scales what is stored with the most that can be, so a limiter that
// was half warm stays half warm, and leaves what is owed as it is.
//
// Limit is 1: Remaining tells whether anything is owed.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent, with
// time in 1/64 ns (microseconds run 4 % fast at 80 000 a second).
//
// Do not use it where arrivals at the rate must never be denied: while it is
// cold they are. See also SmoothBursty about callers who choose the cost.
type SmoothWarmingUp struct{ guava }

// guava is what a SmoothWarmingUp is underneath: a warming, or without warm-up
// a SmoothBursty.
type guava interface {
	Limiter
	peeker
	Describer
	Allow(key string, n int64) bool
	SetRate(r Rate) error
	SetSpec(s Spec) error
	Reset(key string)
	Len() int
	Overflowed() uint64
}

// NewSmoothWarmingUp makes a limiter with the options [ColdFactor] (default
// 3), [MaxWait], [MaxKeys] and [OnFull]. A warm-up of 0 makes it a
// [SmoothBursty] that saves one second's worth; the longest is half a year, and
// so is what MaxWait(Forever) stands for here. The error names the field and
// the value that no limit can keep.
func NewSmoothWarmingUp(r Rate, warmup time.Duration, opts ...Option) (*SmoothWarmingUp, error) {
	return construct(&smoothWarmingUp, Spec{Rate: r, Warmup: warmup}, opts, newSmoothWarmingUp)
}

var smoothWarmingUp = kind{"smooth-warming-up", "smooth warming up", []string{"Warmup", "ColdFactor", "MaxWait", "MaxKeys", "OnFull"}}

func newSmoothWarmingUp(s Spec) (*SmoothWarmingUp, error) {
	if cold := s.coldFactor(); !(cold > 1 && cold <= mostColdFactor) {
		return nil, fmt.Errorf("algo: %s: cold factor is %v, want more than 1, %v at most",
			smoothWarmingUp.title, cold, float64(mostColdFactor))
	}
	if s.Warmup == 0 {
		l := new(SmoothBursty)
		if err := l.save(&smoothWarmingUp, s); err != nil {
			return nil, err
		}
		return &SmoothWarmingUp{l}, nil
	}
	w := &warming{spec: s}
	w.cells.init(s)
	if err := w.SetRate(s.Rate); err != nil {
		return nil, err
	}
	return &SmoothWarmingUp{w}, nil
}

// coldFactor returns ColdFactor or its default.
func (s *Spec) coldFactor() float64 {
	if !s.Given("cold") {
		return defaultColdFactor
	}
	return s.ColdFactor
}

// mostColdFactor keeps the arithmetic far from the ends of float64.
const mostColdFactor = 1e6

// ColdFactor says how many times as much a permit of a [SmoothWarmingUp] costs
// when it is cold: more than 1, at most 1e6. The default is 3.
func ColdFactor(f float64) Option {
	return Option{"ColdFactor", func(s *Spec) { s.ColdFactor = f }}
}

// warming applies a ramp to the cells of a limiter.
type warming struct {
	cells   cells[warmth]
	ramp    atomic.Pointer[ramp]
	setting sync.Mutex
	spec    Spec
}

// SetRate changes the rate while the limiter runs. What is owed stays owed, as
// time, and what is stored stays the same part of the most.
func (l *warming) SetRate(r Rate) error {
	return l.set(func(s Spec) (Spec, error) { s.Rate = r; return s, nil })
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (l *warming) SetSpec(s Spec) error {
	return l.set(func(was Spec) (Spec, error) { return was.replace(&smoothWarmingUp, s) })
}

func (l *warming) set(change func(Spec) (Spec, error)) error {
	l.setting.Lock()
	defer l.setting.Unlock()
	s, err := change(l.spec)
	if err != nil {
		return err
	}
	p, err := newRamp(s.Rate, s.Warmup, s.MaxWait, s.coldFactor())
	if err != nil {
		return fmt.Errorf("algo: smooth warming up: %w", err)
	}
	l.spec = s
	l.ramp.Store(p)
	return nil
}

// Acquire charges n permits to key unless it owes too much; see [Limiter]. It
// ignores ctx, because it never waits. A negative n is [ErrCost].
func (l *warming) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	l.acquireAt(&lease, l.cells.clock.now(), key, n)
	return lease, nil
}

func (l *warming) acquireAt(lease *Lease, now int64, key string, n int64) {
	h, now := l.cells.lock(key, now)
	if h.value == nil {
		lease.Decision = crowded(l.cells.onFull, 1, l.cells.soonest(key, now))
		return
	}
	p := l.ramp.Load()
	was := *h.value
	next, over := p.charge(was, now, n)
	if next == was {
		h.leave()
		p.explain(&lease.Decision, was, now, n, over)
		return
	}
	*h.value = next
	h.unlock(next.expiry())
	p.explain(&lease.Decision, next, now, n, over)
	lease.releaser = l
	start := max(was.free, now)
	lease.handle.Key, lease.handle.N, lease.handle.At = key, n, start
	lease.handle.State = [3]int64{
		next.free - start,
		next.cold - next.free - max(was.cold-start, 0),
		n<<32 | next.resets&rampMost,
	}
}

// Allow is the short form of Acquire for callers that want only the verdict.
// It does not admit with a delay. A negative n is denied.
func (l *warming) Allow(key string, n int64) bool {
	return n >= 0 && l.allowAt(l.cells.clock.now(), key, n)
}

func (l *warming) allowAt(now int64, key string, n int64) bool {
	h, now := l.cells.lock(key, now)
	if h.value == nil {
		return l.cells.onFull == AllowNew
	}
	next, over := l.ramp.Load().charge(*h.value, now, n)
	if n == 0 || over > 0 {
		h.leave()
		return n == 0
	}
	*h.value = next
	h.unlock(next.expiry())
	return true
}

// Release gives back what a canceled admission still weighs. It implements
// [Releaser]; callers use [Lease.Release].
func (l *warming) Release(h Handle, o Outcome) {
	if o == Canceled {
		l.giveBack(h, h.N)
	}
}

// Settle corrects the cost of an admission. It implements [Releaser]; callers
// use [Lease.Settle].
//
// What the price of a permit is depends on when it is taken. So what is charged
// beyond the first cost is not given back later, and what is given back and
// charged again costs at least what it did at first: nothing can be won by
// settling up and down.
func (l *warming) Settle(h Handle, actual int64) {
	if actual <= h.N {
		l.giveBack(h, h.N-actual)
		return
	}
	c, now := l.cells.lock(h.Key, l.cells.clock.now())
	if c.value == nil {
		return
	}
	p := l.ramp.Load()
	if c.value.free-now > p.wait+toTicks(rampSpan) {
		c.leave() // deep in debt already: more would only overflow
		return
	}
	next := p.spend(*c.value, now, min(actual-h.N, p.most))
	cost, charged := h.State[0], h.State[2]>>32
	again := share(cost, firstUnits(h.N, actual, charged), charged) + 1
	if short := again - (next.free - max(c.value.free, now)); short > 0 {
		next.free, next.cold = next.free+short, next.cold+short
	}
	*c.value = next
	c.unlock(next.expiry())
}

// giveBack refunds n of the permits of an admission, at most what they still
// weigh: a charge begins to be paid off when its work starts.
func (l *warming) giveBack(h Handle, n int64) {
	cost, taken, charged := h.State[0], h.State[1], h.State[2]>>32
	c, now := l.cells.lock(h.Key, l.cells.clock.now())
	if c.value == nil {
		return
	}
	now = max(now, l.cells.clock.now()) // what drained while we waited is gone
	left := share(cost, min(h.N, charged), charged) - max(now-h.At, 0)
	if left <= 0 || c.value.resets&rampMost != h.State[2]&rampMost {
		c.leave()
		return
	}
	back := min(left, share(cost, firstUnits(h.N-n, h.N, charged), charged))
	*c.value = c.value.undo(now, back, share(taken, back, cost))
	c.unlock(max(c.value.expiry(), now))
}

// firstUnits is how many of the units from..to are among the first charged.
func firstUnits(from, to, charged int64) int64 { return min(to, charged) - min(from, charged) }

// share is x*part/whole, for 0 <= part <= whole, 0 < whole.
func share(x, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// Reset makes key what it was at first: cold, and owing nothing. What was
// admitted before cannot be given back afterwards.
func (l *warming) Reset(key string) {
	h, now := l.cells.lock(key, l.cells.clock.now())
	if h.value == nil {
		return
	}
	until := max(h.value.expiry(), now)
	*h.value = warmth{resets: h.value.resets + 1, until: until}
	h.unlock(until)
}

// Len counts the keys that are not cold, or were not when they were reset. It
// walks the table.
func (l *warming) Len() int { return l.cells.live(l.cells.clock.now()) }

// Overflowed counts the decisions on new keys that found the table full.
func (l *warming) Overflowed() uint64 { return l.cells.spilled() }

// Describe says what callers are promised once it is warm: one permit in the
// time that one costs.
func (l *warming) Describe() (Description, bool) {
	return Description{Quota: 1, Window: toDuration(int64(l.ramp.Load().stable))}, true
}
