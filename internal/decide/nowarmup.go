package decide

// NoWarmup is the limit of a [Warmup] without a warm-up: the bucket of Guava's
// SmoothBursty over the same state, which is a TAT then.
type NoWarmup struct {
	*GCRA
	first int64 // the TAT of an unused key
}

// NewNoWarmup makes the limit over g. Nothing is saved at the instant begin.
func NewNoWarmup(g *GCRA, begin int64) *NoWarmup { return &NoWarmup{g, g.Empty(begin)} }

func (p *NoWarmup) tat(s *WarmupState) int64 { return max(s.free, p.first) }

// Answer charges n permits, at most with a delay.
func (p *NoWarmup) Answer(s *WarmupState, now, n int64) (*WarmupState, Answer, Quota) {
	next, a, q := p.GCRA.Answer(p.tat(s), now, n)
	s.free = next
	return s, a, q
}

// Peek is Answer without the charge.
func (p *NoWarmup) Peek(s *WarmupState, now, n int64) (Answer, Quota) {
	return p.GCRA.Peek(p.tat(s), now, n)
}

// Admit charges n permits if they fit without a delay.
func (p *NoWarmup) Admit(s *WarmupState, now, n int64) (_ *WarmupState, ok bool) {
	s.free, ok = p.GCRA.Admit(p.tat(s), now, n)
	return s, ok
}

// Charge describes the charge that led to s.
func (p *NoWarmup) Charge(s *WarmupState, now, n, delay int64) Charge {
	return p.GCRA.Charge(s.free, now, n, delay)
}

// Refund is [GCRA.Refund].
func (p *NoWarmup) Refund(s *WarmupState, c Charge, now, n, shift int64) (_ *WarmupState, given int64) {
	s.free, given = p.GCRA.Refund(p.tat(s), c, now, n, shift)
	return s, given
}

// ForceCharge is [GCRA.ForceCharge].
func (p *NoWarmup) ForceCharge(s *WarmupState, c Charge, now, n int64) (_ *WarmupState, cut bool) {
	s.free, cut = p.GCRA.ForceCharge(p.tat(s), c, now, n)
	return s, cut
}

// Reset returns the state of a key without debt.
func (p *NoWarmup) Reset(s *WarmupState, now int64) *WarmupState {
	s.free = p.GCRA.Reset(p.tat(s), now)
	return s
}

// Plausible is [GCRA.Plausible].
func (p *NoWarmup) Plausible(s *WarmupState, now int64) bool {
	return p.GCRA.Plausible(p.tat(s), now)
}

// Clamp is [GCRA.Clamp].
func (p *NoWarmup) Clamp(s *WarmupState, now int64) (_ *WarmupState, cut bool) {
	s.free, cut = p.GCRA.Clamp(p.tat(s), now)
	return s, cut
}

// Expiry returns the instant from which s is equivalent to the zero state.
func (p *NoWarmup) Expiry(s *WarmupState, _ int64) int64 { return s.free }
