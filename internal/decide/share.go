package decide

import (
	"math"
	"time"
)

// Share is the limit of one child of [Shares]. The children of one key have one state.
type Share struct {
	*Shares
	Child int
}

// Limit returns the most units that the child gets at once.
func (c *Share) Limit() int64 { return c.most(c.Child) / c.period }

// FillTime returns the time in which the whole rate brings Limit units.
func (c *Share) FillTime(r Rate) time.Duration { return r.fillTime(c.Limit()) }

// Answer charges n units to the bucket of the child, and the rest to the common one,
// if they fit.
func (c *Share) Answer(s *SharesState, now, n int64) (*SharesState, Answer, Quota) {
	a := c.answer(s, now, n)
	if a.Allowed && n > 0 {
		s.paid = c.take(s, c.Child, n*c.period)
	}
	return s, a, c.quota(s, now)
}

// Peek is Answer without the charge.
func (c *Share) Peek(s *SharesState, now, n int64) (Answer, Quota) {
	return c.answer(s, now, n), c.quota(s, now)
}

// Admit charges n units if they fit.
func (c *Share) Admit(s *SharesState, now, n int64) (*SharesState, bool) {
	c.refill(s, now>>c.shift)
	if n > c.available(s, c.Child)/c.period {
		return s, n == 0
	}
	c.take(s, c.Child, n*c.period)
	return s, true
}

// answer states whether n units fit, and when. Spans count from now, which may be before s.last.
func (c *Share) answer(s *SharesState, now, n int64) Answer {
	c.refill(s, now>>c.shift)
	switch {
	case n <= c.available(s, c.Child)/c.period || n == 0:
		return Answer{Allowed: true}
	case n > c.Limit():
		return Answer{Never: true}
	}
	return Answer{RetryAfter: c.span(s, now, c.until(s, c.Child, n*c.period))}
}

// quota describes the remaining units.
func (c *Share) quota(s *SharesState, now int64) Quota {
	has := c.available(s, c.Child)
	q := Quota{Limit: c.Limit(), Remaining: has / c.period}
	if has < c.most(c.Child) {
		q.ResetAfter = c.span(s, now, c.until(s, c.Child, c.most(c.Child)))
	}
	if q.Remaining < q.Limit {
		q.NextAfter = c.span(s, now, c.until(s, c.Child, (q.Remaining+1)*c.period))
	}
	return q
}

// span returns the ticks from now until dt steps after s.last.
func (c *Share) span(s *SharesState, now, dt int64) int64 {
	return c.ticks(max(s.last-now>>c.shift, 0) + dt)
}

func (c *Share) ticks(steps int64) int64 { return min(steps, math.MaxInt64>>c.shift) << c.shift }

// Charge describes a charge of n units that has just been made: A is the payment of the
// child's bucket, in parts, B is n.
func (c *Share) Charge(s *SharesState, _, n, _ int64) Charge {
	return Charge{N: n, At: s.last, A: s.paid, B: n}
}

// paidBy returns the payments of the child's bucket and of the common one for n units of ch, in
// parts. Units beyond the first cost do not count, because they are not refunded.
func (c *Share) paidBy(ch Charge, n int64) (own, common int64) {
	parts := min(n, ch.B) * c.period
	return min(parts, ch.A), max(parts-ch.A, 0)
}

// MaxRefund returns 0: a refund depends only on the refill since its own charge.
func (c *Share) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of ch back, first to the common bucket and then to the child's. Each gets at
// most its payment minus all that can have refilled since. No order of refunds creates units. The
// second result is in parts. now must be read under the lock.
func (c *Share) Refund(s *SharesState, ch Charge, now, n, _ int64) (*SharesState, int64) {
	c.refill(s, now>>c.shift)
	elapsed := max(s.last-ch.At, 0)
	own, common := c.paidBy(ch, ch.N)
	keepOwn, keepCommon := c.paidBy(ch, ch.N-n)
	leftOwn, _ := fill(own, c.floors[c.Child], elapsed)
	leftCommon, _ := fill(common, c.total(), elapsed)
	toOwn := min(own-keepOwn, leftOwn, s.own[c.Child])
	toCommon := min(common-keepCommon, leftCommon, s.common)
	s.own[c.Child] -= toOwn
	s.common -= toCommon
	return s, toOwn + toCommon
}

// ForceCharge charges n units more, whether they fit or not: units that the child's bucket
// lacks become debt of the common one, up to its depth. So one child's debt takes no floor
// from another. The result reports a cut.
func (c *Share) ForceCharge(s *SharesState, _ Charge, now, n int64) (*SharesState, bool) {
	c.refill(s, now>>c.shift)
	most := c.depths[c.Child] - s.own[c.Child] + max(2*c.common-s.common, 0)
	cut := n > most/c.period
	if cut {
		c.take(s, c.Child, most)
	} else {
		c.take(s, c.Child, n*c.period)
	}
	return s, cut
}

// Reset fills all buckets of the key.
func (c *Share) Reset(s *SharesState, now int64) *SharesState {
	c.refill(s, now>>c.shift)
	clear(s.own)
	s.common = 0
	return s
}

// Plausible returns true: the parameters do not change.
func (c *Share) Plausible(*SharesState, int64) bool { return true }

// Clamp changes nothing.
func (c *Share) Clamp(s *SharesState, _ int64) (*SharesState, bool) { return s, false }

// Expiry returns the instant from which all buckets are full, as in the zero state.
func (c *Share) Expiry(s *SharesState, _ int64) int64 { return c.ticks(s.last + c.untilFull(s)) }
