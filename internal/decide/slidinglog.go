package decide

import "fmt"

// SlidingLog is a sliding window that keeps the instant of every unit. A unit
// comes back the moment its instant is one period old.
type SlidingLog struct {
	quota  int64
	period int64 // in steps
	wide   bool  // whether the period needs two words
	shift  uint8 // 2^shift ticks are a step
}

// maxLogCount bounds the quota of a [SlidingLog].
const maxLogCount = 1 << 16

// NewSlidingLog validates; the error names field and value.
func NewSlidingLog(r Rate) (*SlidingLog, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Count > maxLogCount {
		return nil, fmt.Errorf("rate: count is %d, want at most %d: a log keeps each unit; see Cells for more",
			r.Count, maxLogCount)
	}
	period := int64(r.Period / r.step)
	return &SlidingLog{quota: r.Count, period: period, wide: period >= 1<<32, shift: r.shift}, nil
}

// Limit returns the quota.
func (p *SlidingLog) Limit() int64 { return p.quota }

// Answer charges n units if they fit.
func (p *SlidingLog) Answer(s *Timestamps, now, n int64) (*Timestamps, Answer, Quota) {
	a, q := answerSliding(p, s, now, n)
	return s, a, q
}

// Peek is Answer without the charge.
func (p *SlidingLog) Peek(s *Timestamps, now, n int64) (Answer, Quota) {
	return peekSliding(p, s, now, n)
}

// Admit charges n units if they fit.
func (p *SlidingLog) Admit(s *Timestamps, now, n int64) (*Timestamps, bool) {
	return s, admitSliding(p, s, now, n)
}

// Charge describes a charge of n units at now.
func (p *SlidingLog) Charge(s *Timestamps, now, n, _ int64) Charge {
	return Charge{N: n, At: max(now, p.latest(s)), A: n}
}

// MaxRefund returns 0: charges do not move.
func (p *SlidingLog) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of c back, as far as they still weigh. The second result
// is in units.
func (p *SlidingLog) Refund(s *Timestamps, c Charge, now, n, _ int64) (*Timestamps, int64) {
	return s, refundSliding(p, s, c, now, n)
}

// ForceCharge charges n units more, at most a quota. Units that do not fit
// replace older units, which can then not be refunded.
func (p *SlidingLog) ForceCharge(s *Timestamps, _ Charge, now, n int64) (*Timestamps, bool) {
	p.adopt(s, now)
	now = max(now, p.latest(s))
	cut := n > p.quota-p.used(s, now)
	if n > 0 {
		p.add(s, now, min(n, p.quota))
	}
	return s, cut
}

// Plausible returns true: the entries of a log hold under every rate.
func (p *SlidingLog) Plausible(*Timestamps, int64) bool { return true }

// Clamp changes nothing.
func (p *SlidingLog) Clamp(s *Timestamps, _ int64) (*Timestamps, bool) { return s, false }

// Reset forgets all units.
func (p *SlidingLog) Reset(s *Timestamps, _ int64) *Timestamps {
	s.Inherit(new(Timestamps))
	return s
}

// Expiry returns the instant from which s is equivalent to the zero state.
func (p *SlidingLog) Expiry(s *Timestamps, now int64) int64 { return expirySliding(p, s, now) }

// adopt widens the timestamps for a longer period.
func (p *SlidingLog) adopt(s *Timestamps, _ int64) {
	switch {
	case !p.wide || s.wide:
	case s.size == 0:
		s.wide, s.head = true, 0 // half as many fit: head may lie beyond
	default:
		s.resize(s.capacity(), true)
	}
}

func (p *SlidingLog) latest(s *Timestamps) int64 { return s.newest << p.shift }

func (p *SlidingLog) together(a, b int64) bool { return a>>p.shift == b>>p.shift }

// used returns how many timestamps are younger than the window at now. add forgets the others.
func (p *SlidingLog) used(s *Timestamps, now int64) int64 {
	return int64(s.size) - int64(s.passed(now>>p.shift-p.period))
}

// add records n units, at most a quota. It forgets the timestamps that have passed, and the oldest
// others beyond a quota and beyond those left from a larger quota.
func (p *SlidingLog) add(s *Timestamps, now, n int64) {
	at := now >> p.shift
	s.drop(s.passed(at - p.period))
	s.drop(int32(min(n, int64(s.size)+n-p.quota)))
	if need := int64(s.size) + n; need > int64(s.capacity()) {
		s.resize(int32(min(max(need, 2*int64(s.capacity()), fewTimestamps), max(p.quota, need))), s.wide)
	}
	s.newest = max(at, s.newest)
	for range n {
		s.set(s.size, at)
		s.size++
	}
}

// remove takes up to n timestamps of the instant at, and closes the gap from the newer side.
func (p *SlidingLog) remove(s *Timestamps, at, n int64) int64 {
	at >>= p.shift
	from := s.passed(at - 1) // the first that is not older
	to := s.passed(at)       // the first that is younger
	gap := int32(min(n, int64(to-from)))
	for i := from; i+gap < s.size; i++ {
		s.set(i, s.get(i+gap))
	}
	s.size -= gap
	return int64(gap)
}

// after returns the span from now until at most most units weigh: until the last excess unit has
// passed.
func (p *SlidingLog) after(s *Timestamps, now, most int64) int64 {
	i := int64(s.size) - most - 1
	if i < 0 {
		return 0
	}
	return max(s.get(int32(i))+p.period-now>>p.shift, 0) << p.shift
}
