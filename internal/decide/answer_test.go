package decide

// Verdict is the whole of an answer, to be compared.
type Verdict struct {
	Answer
	Quota
}

func decideBy[S any](answer func(s S, now, n int64) (S, Answer, Quota), s S, now, n int64) (S, Verdict) {
	next, a, q := answer(s, now, n)
	return next, Verdict{a, q}
}

// Decide is Answer of any state.
func (g *GCRA) Decide(tat, now, n int64) (int64, Verdict) {
	next, v := decideBy(g.Answer, min(tat, addSaturated(now, g.maxDebt)), now, n)
	if !v.Allowed || n == 0 {
		next = tat
	}
	return next, v
}

func (p *ColorLimit) Decide(s *ColorState, now, n int64) (*ColorState, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *NoWarmup) Decide(s *WarmupState, now, n int64) (*WarmupState, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *Warmup) Decide(s *WarmupState, now, n int64) (*WarmupState, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *SlidingCells) Decide(s *Counters, now, n int64) (*Counters, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *SlidingCounters) Decide(s *Counters, now, n int64) (*Counters, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *SlidingLog) Decide(s *Timestamps, now, n int64) (*Timestamps, Verdict) {
	return decideBy(p.Answer, s, now, n)
}

func (p *FixedWindow) Decide(s int64, now, n int64) (int64, Verdict) {
	return decideBy(p.Answer, s, now, n)
}
