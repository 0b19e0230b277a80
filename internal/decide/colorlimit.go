package decide

// ColorLimit admits units that come in Green and that a [ThreeColor] marks Pass or greener. With
// Red it admits everything. A denial charges nothing.
type ColorLimit struct {
	*ThreeColor
	Pass Color
}

// Answer charges n units to the buckets of their color if it passes.
func (c *ColorLimit) Answer(s *ColorState, now, n int64) (*ColorState, Answer, Quota) {
	at := now >> c.shift
	next, out := c.mark(*s, at, n, Green)
	allowed := out <= c.Pass || n == 0
	if allowed && out != Red && n > 0 {
		*s = next
	} else {
		if allowed && n > 0 {
			s.color = Red // it passes, and charges nothing
		}
		next = c.refill(*s, at)
	}
	return s, c.answer(&next, n, allowed, at), c.quota(&next, at)
}

// Peek is Answer without the charge.
func (c *ColorLimit) Peek(s *ColorState, now, n int64) (Answer, Quota) {
	at := now >> c.shift
	_, out := c.mark(*s, at, n, Green)
	is := c.refill(*s, at)
	return c.answer(&is, n, out <= c.Pass || n == 0, at), c.quota(&is, at)
}

// Admit charges n units to the buckets of their color if it passes.
func (c *ColorLimit) Admit(s *ColorState, now, n int64) (*ColorState, bool) {
	next, out := c.mark(*s, now>>c.shift, n, Green)
	if out <= c.Pass && out != Red && n > 0 {
		*s = next
	}
	return s, out <= c.Pass || n == 0
}

// answer states when n units fit. Spans count from now, which may be before s.last.
func (c *ColorLimit) answer(s *ColorState, n int64, allowed bool, now int64) Answer {
	if allowed {
		return Answer{Allowed: true}
	}
	after := c.untilPass(*s, n)
	if after == never {
		return Answer{Never: true}
	}
	return Answer{RetryAfter: c.ticks(after + s.last - now)}
}

// quota describes the remaining units.
func (c *ColorLimit) quota(s *ColorState, now int64) Quota {
	q := Quota{Limit: c.Limit(), Remaining: c.remaining(*s)}
	if c.Pass == Red {
		return q
	}
	late := s.last - now
	if full := c.longer(c.untilFull(*s)); full > 0 {
		q.ResetAfter = c.ticks(full + late)
	}
	if q.Remaining < q.Limit {
		q.NextAfter = c.ticks(c.untilNext(*s) + late)
	}
	return q
}

// longer picks the bucket for which the last unit of the quota waits.
func (c *ColorLimit) longer(committed, excess int64) int64 {
	switch {
	case c.plan == peaking && c.Pass == Yellow:
		return excess
	case c.plan != peaking && c.Pass == Green:
		return committed
	}
	return max(committed, excess)
}

// Limit returns the most single units that pass at once.
func (c *ColorLimit) Limit() int64 { return c.remaining(ColorState{}) }

// FillTime returns the ticks after which Limit units pass empty buckets.
func (c *ColorLimit) FillTime() int64 {
	return c.ticks(c.longer(c.untilFull(ColorState{committed: c.committed.parts, excess: c.excess.parts})))
}

// remaining returns how many single units would pass now.
func (c *ColorLimit) remaining(s ColorState) int64 {
	committed, excess := c.committed.tokens(s.committed), c.excess.tokens(s.excess)
	switch {
	case c.plan == peaking && c.Pass == Green:
		return min(committed, excess)
	case c.plan == peaking:
		return excess
	case c.Pass == Green:
		return committed
	}
	return committed + excess
}

// untilPass returns the time until n units pass at once.
func (c *ColorLimit) untilPass(s ColorState, n int64) int64 {
	committed, excess := c.until(s, n)
	switch {
	case c.plan == peaking && c.Pass == Green:
		return max(committed, excess)
	case c.plan == peaking:
		return excess
	case c.Pass == Green:
		return committed
	}
	return min(committed, excess)
}

// untilNext returns the time until one unit more than remaining passes.
func (c *ColorLimit) untilNext(s ColorState) int64 {
	if c.plan == peaking || c.Pass == Green {
		return c.untilPass(s, c.remaining(s)+1)
	}
	committed, _ := c.until(s, c.committed.tokens(s.committed)+1)
	_, excess := c.until(s, c.excess.tokens(s.excess)+1)
	return min(committed, excess)
}

// Charge describes the last charge, of n units: its color, and n.
func (c *ColorLimit) Charge(s *ColorState, _, n, _ int64) Charge {
	return Charge{N: n, At: s.last, A: int64(s.color), B: n}
}

// MaxRefund returns 0: a refund depends only on the refill since its own charge.
func (c *ColorLimit) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of ch back to the charged buckets, at most the charge's remaining weight:
// its cost minus the refill since. No order of refunds creates units; a large debt before the
// charge makes the refund smaller than possible. The second result is in parts. now must be read
// under the lock.
func (c *ColorLimit) Refund(s *ColorState, ch Charge, now, n, _ int64) (*ColorState, int64) {
	*s = c.refill(*s, now>>c.shift)
	out, first, elapsed := Color(ch.A), ch.B, max(s.last-ch.At, 0)
	n = firstUnits(ch.N-n, ch.N, first)
	var given int64
	if out == Green {
		back := c.committed.refundable(s.committed, min(ch.N, first), n, elapsed)
		s.committed -= back
		given += back
	}
	if c.takesExcess(out) {
		back := c.excess.refundable(s.excess, min(ch.N, first), n, elapsed)
		s.excess -= back
		given += back
	}
	return s, given
}

// ForceCharge charges n units more, for which a bucket goes into debt by at most its size: units
// that ch has given back go to their buckets, units beyond its first cost, which are not refunded,
// are divided by [ColorLimit.beyond].
func (c *ColorLimit) ForceCharge(s *ColorState, ch Charge, now, n int64) (*ColorState, bool) {
	*s = c.refill(*s, now>>c.shift)
	was := *s
	again := firstUnits(ch.N, ch.N+n, ch.B)
	committed, excess := c.taken(Color(ch.A), again)
	moreCommitted, moreExcess := c.beyond(was, Color(ch.A), n-again)
	s.committed = c.committed.forceCharge(s.committed, committed, moreCommitted)
	s.excess = c.excess.forceCharge(s.excess, excess, moreExcess)
	return s, c.committed.cut(was.committed, s.committed, committed) || c.excess.cut(was.excess, s.excess, excess)
}

// taken divides n units of color out between the buckets.
func (c *ColorLimit) taken(out Color, n int64) (committed, excess int64) {
	if out == Green {
		committed = n
	}
	if c.takesExcess(out) {
		excess = n
	}
	return committed, excess
}

// beyond divides n units beyond a first cost that was charged as out. If either bucket admits,
// green units empty both before the committed one goes into debt: a remaining unit would admit the
// next request.
func (c *ColorLimit) beyond(s ColorState, out Color, n int64) (committed, excess int64) {
	switch {
	case c.plan == peaking || c.Pass != Yellow || out != Green:
		return c.taken(out, n)
	case c.committed.size == 0:
		return 0, n
	}
	excess = min(max(n-c.committed.tokens(s.committed), 0), c.excess.tokens(s.excess))
	return n - excess, excess
}

// Reset fills the buckets.
func (c *ColorLimit) Reset(s *ColorState, now int64) *ColorState {
	*s = ColorState{last: max(s.last, now>>c.shift)}
	return s
}

// Plausible returns true: the parameters of a marker do not change.
func (c *ColorLimit) Plausible(*ColorState, int64) bool { return true }

// Clamp changes nothing.
func (c *ColorLimit) Clamp(s *ColorState, _ int64) (*ColorState, bool) { return s, false }
