package algo

import (
	"context"
	"fmt"
	"time"
)

// FromMarker makes a limiter that admits what m marks pass or greener, and
// denies what is redder. All requests come in as Green. With Red it admits
// everything.
//
// With the markers of this package a denial charges nothing, not even the
// bucket of the color that was denied, so limiters of several colors over the
// same marker make one consistent set; RetryAfter is exact; and the limiter has
// Len() int, Reset(key string) and [Describe] too. Limit and Remaining count
// single units; a request of n units is never split between two buckets.
//
// Canceled gives back to the buckets that were charged what the charge still
// weighs at least: its cost less what came in since. That never mints, in
// whatever order leases are released; it gives back less than possible when
// much was owed before the charge. Settle moves the cost up or down in those
// same buckets; what it charges beyond the first cost, for which a bucket goes
// into debt by its size at most, is not given back any more; and nothing is that
// was charged before a bucket could not owe all that was charged again.
//
// With any other marker a denied request counts as that marker counts it,
// nothing can be given back, Limit and Remaining are unknown (0), and because
// a marker cannot say when, RetryAfter is one second.
//
// It panics if m is nil or pass is no color.
func FromMarker(m Marker, pass Color) Limiter {
	if m == nil {
		panic("algo: FromMarker: the marker is nil")
	}
	if pass > Red {
		panic(fmt.Sprintf("algo: FromMarker: pass is %d, want Green, Yellow or Red", pass))
	}
	if own, ok := m.(*marker); ok {
		return &coloring{own, pass}
	}
	return &foreign{m, pass}
}

// foreign is a limiter over a marker of which nothing is known.
type foreign struct {
	marker Marker
	pass   Color
}

// OccupiesSlot reports false.
func (*foreign) OccupiesSlot() bool { return false }

// Acquire implements [Limiter].
func (f *foreign) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	if n < 0 {
		return Lease{}, costError(n)
	}
	d := Decision{Allowed: true}
	if n > 0 {
		color, err := f.marker.Mark(ctx, key, n, Green)
		if err != nil {
			return Lease{}, err
		}
		if color > f.pass {
			d = Decision{Reason: Quota, RetryAfter: time.Second}
		}
	}
	return Lease{Decision: d}, nil
}

// coloring is a limiter over one of this package's markers.
type coloring struct {
	*marker
	pass Color
}

// Acquire charges n units to key if they are green enough; see [Limiter]. It
// ignores ctx, because it never waits.
func (c *coloring) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	c.acquireAt(&lease, c.now(), key, n)
	return lease, nil
}

func (c *coloring) acquireAt(lease *Lease, now int64, key string, n int64) {
	h, now := c.lock(key, now)
	if h.value == nil {
		lease.Decision = crowded(c.cells.onFull, c.limit(), c.cells.soonest(key, now<<tickShift))
		return
	}
	was, resets := h.value.meters, h.value.resets
	next, out := c.decide(was, now, n, Green)
	if out > c.pass || out == Red || n == 0 {
		h.leave()
		c.explain(&lease.Decision, c.refill(was, now), n, out, now)
		return
	}
	c.unlock(h, next)
	c.explain(&lease.Decision, next, n, out, now)
	lease.releaser = c.marker
	lease.handle.Key, lease.handle.N, lease.handle.At = key, n, next.last
	lease.handle.State = [3]int64{int64(out), resets, n}
}

// explain writes what was decided and is left. Durations count from now, which
// may lie before s.last.
func (c *coloring) explain(d *Decision, s meters, n int64, out Color, now int64) {
	late := s.last - now
	d.Limit, d.Remaining = c.limit(), c.remaining(s)
	if c.pass == Red {
		d.Allowed = true
		return
	}
	if full := c.wait(c.untilFull(s)); full > 0 {
		d.ResetAfter = nanos(full + late)
	}
	if d.Remaining < d.Limit {
		d.NextAfter = nanos(c.untilNext(s) + late)
	}
	switch after := c.untilPass(s, n); {
	case n == 0 || out <= c.pass:
		d.Allowed = true
	case after == never:
		d.Reason, d.RetryAfter = Never, Forever
	default:
		d.Reason, d.RetryAfter = Quota, nanos(after+late)
	}
}

// wait picks the bucket that was asked about which the last unit of the quota
// waits for.
func (c *coloring) wait(committed, excess int64) int64 {
	switch {
	case c.plan == peaking && c.pass == Yellow:
		return excess
	case c.plan != peaking && c.pass == Green:
		return committed
	}
	return max(committed, excess)
}

// limit is the most single units that pass at once.
func (c *coloring) limit() int64 { return c.remaining(meters{}) }

// remaining is how many single units would pass now.
func (c *coloring) remaining(s meters) int64 {
	committed, excess := c.committed.tokens(s.committed), c.excess.tokens(s.excess)
	switch {
	case c.plan == peaking && c.pass == Green:
		return min(committed, excess)
	case c.plan == peaking:
		return excess
	case c.pass == Green:
		return committed
	}
	return committed + excess
}

// untilPass is how long it takes until n units at once pass.
func (c *coloring) untilPass(s meters, n int64) int64 {
	committed, excess := c.until(s, n)
	switch {
	case c.plan == peaking && c.pass == Green:
		return max(committed, excess)
	case c.plan == peaking:
		return excess
	case c.pass == Green:
		return committed
	}
	return min(committed, excess)
}

// untilNext is how long it takes until one unit more than remaining passes.
func (c *coloring) untilNext(s meters) int64 {
	if c.plan == peaking || c.pass == Green {
		return c.untilPass(s, c.remaining(s)+1)
	}
	committed, _ := c.until(s, c.committed.tokens(s.committed)+1)
	_, excess := c.until(s, c.excess.tokens(s.excess)+1)
	return min(committed, excess)
}

// Describe says what callers are promised: the units that pass at once, in the
// time that they take to come back.
func (c *coloring) Describe() (Description, bool) {
	if c.pass == Red {
		return Description{}, false
	}
	s := meters{committed: c.committed.parts, excess: c.excess.parts}
	return Description{Quota: c.limit(), Window: nanos(c.wait(c.untilFull(s)))}, true
}

// Release gives back what a canceled admission still weighs. It implements
// [Releaser]; callers use [Lease.Release].
func (m *marker) Release(h Handle, o Outcome) {
	if o == Canceled {
		m.giveBack(h, h.N)
	}
}

// Settle corrects the cost of an admission. It implements [Releaser]; callers
// use [Lease.Settle].
func (m *marker) Settle(h Handle, actual int64) {
	if actual <= h.N {
		m.giveBack(h, h.N-actual)
		return
	}
	c, now := m.lock(h.Key, m.now())
	if c.value == nil {
		return
	}
	s := m.refill(c.value.meters, now)
	was := s
	again, out := firstUnits(h.N, actual, h.State[2]), Color(h.State[0])
	cut := false
	if out == Green {
		s.committed = m.committed.owe(s.committed, again, actual-h.N-again)
		cut = m.committed.cut(was.committed, s.committed, again)
	}
	if out == Yellow || m.plan == peaking {
		s.excess = m.excess.owe(s.excess, again, actual-h.N-again)
		cut = cut || m.excess.cut(was.excess, s.excess, again)
	}
	if cut {
		c.value.void(m.fullAt(s))
	}
	m.unlock(c, s)
}

// giveBack refunds n units of an admission, at most what it still weighs.
func (m *marker) giveBack(h Handle, n int64) {
	c, now := m.lock(h.Key, m.now())
	if c.value == nil {
		return
	}
	if c.value.resets != h.State[1] {
		c.leave()
		return
	}
	// What drained while we waited for the lock is gone.
	s := m.refill(c.value.meters, max(now, m.now()>>tickShift))
	out, elapsed := Color(h.State[0]), max(s.last-h.At, 0)
	n = firstUnits(h.N-n, h.N, h.State[2])
	if out == Green {
		s.committed -= m.committed.weighs(s.committed, min(h.N, h.State[2]), n, elapsed)
	}
	if out == Yellow || m.plan == peaking {
		s.excess -= m.excess.weighs(s.excess, min(h.N, h.State[2]), n, elapsed)
	}
	m.unlock(c, s)
}

// owe is what a bucket lacks when tokens are taken whether they are there or
// not: extra ones until it lacks twice its size, and those that are charged
// again after they were given back until it lacks four times its size.
func (m meter) owe(lack, again, extra int64) int64 {
	lack = min(lack+min(extra, m.size)*m.period, max(lack, 2*m.parts))
	return min(lack+min(again, m.size)*m.period, max(lack, 4*m.parts))
}

// cut reports whether a bucket that lacked was and now lacks is has not taken
// all tokens that can be given back again. Then none must be, because it could
// be more than was charged.
func (m meter) cut(was, is, again int64) bool { return is-was < again*m.period }

// weighs returns what may be given back of n of charged tokens, elapsed
// nanoseconds after the charge.
func (m meter) weighs(lack, charged, n, elapsed int64) int64 {
	left, _ := m.drain(min(charged, m.size)*m.period, elapsed)
	return min(left, min(n, m.size)*m.period, lack)
}
