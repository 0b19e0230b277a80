package decide

import "math/bits"

// SlidingCounters is a sliding window over two counters, of the current and the previous period.
// The older one weighs by the share that the window still covers:
//
//	used = ceil(older * (W - elapsed) / W) + newer
//
// Rounded down, a limit of 1/s would admit at 999 ms and again at 1001 ms.
type SlidingCounters struct {
	counting
	settling int64 // until then, no more than settled units weigh; see Succeed
	settled  int64
}

// NewSlidingCounters validates; the error names field and value. origin is an
// instant at which a period begins; none before it is counted.
func NewSlidingCounters(r Rate, origin int64) (*SlidingCounters, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	g := grid{cell: newDivisor(r.Ticks(r.Period)), origin: origin, generation: 1}
	p := &SlidingCounters{counting: counting{quota: r.Count, grid: g}}
	p.window = p
	return p, nil
}

// Succeed returns p as the limit that replaces old at now: the units that a key has spent
// stay spent. When the period changes, the remaining weight counts as if it had been
// spent when the key is next used. When the quota grows, the debt of a key beyond it is
// cut.
func (p *SlidingCounters) Succeed(old *SlidingCounters, now int64) *SlidingCounters {
	next := *p
	next.window = &next
	next.succeed(&old.grid)
	if p.quota > old.quota {
		next.settling, next.settled = addSaturated(now, 2*old.cell.by), p.quota
	} else if now < old.settling { // units that fit since the quota grew stay spent
		next.settling, next.settled = old.settling, min(max(p.quota, old.settled), 2*p.quota)
	}
	return &next
}

// State returns the state with those counts in period number index and in the previous one.
func (p *SlidingCounters) State(index, older, newer int64) Counters {
	s := Counters{width: p.cell.by, generation: p.generation, newest: index}
	s.two[index&1], s.two[(index+1)&1] = newer, older
	return s
}

// Plausible reports whether s was counted in periods of this length, at most
// one later than now.
func (p *SlidingCounters) Plausible(s *Counters, now int64) bool {
	return p.current(s) && s.newest <= p.number(now)+1 && !p.owes(s, now)
}

// owes reports whether the weight exceeds the bound that applies while keys settle.
func (p *SlidingCounters) owes(s *Counters, now int64) bool {
	return now < p.settling && p.used(s, max(now, p.latest(s))) > p.settled
}

// Clamp carries the remaining weight of another period into the current one, and counts of later
// periods back.
func (p *SlidingCounters) Clamp(s *Counters, now int64) (*Counters, bool) {
	p.adopt(s, now)
	if i := p.number(now); s.newest > i+1 {
		older, newer := p.pair(s, s.newest)
		*s = p.State(i, older, newer)
	}
	if !p.owes(s, now) {
		return s, false
	}
	now = max(now, p.latest(s))
	i := p.number(now)
	older, newer := p.pair(s, i)
	older = min(older, p.settled)
	*s = p.State(i, older, min(newer, p.settled-p.weigh(older, i, now)))
	return s, true
}

func (p *SlidingCounters) adopt(s *Counters, now int64) {
	if s.generation == p.generation {
		return
	}
	var newest, carry int64
	if s.width != 0 {
		was := *p
		was.cell = newDivisor(s.width)
		now = max(now, was.latest(s))
		newest, carry = p.number(now), min(was.used(s, now), 2*p.quota)
	}
	*s = p.State(newest, 0, carry)
}

// used returns how many units weigh at now, which is not before latest.
func (p *SlidingCounters) used(s *Counters, now int64) int64 {
	i := p.number(now)
	older, newer := p.pair(s, i)
	return p.weigh(older, i, now) + newer
}

// weigh returns the weight of n units of cell i-1 at now, which is in cell i.
func (p *SlidingCounters) weigh(n, i, now int64) int64 {
	left := min(p.begin(i+1)-now, p.cell.by)
	if n == 0 || left == p.cell.by {
		return n
	}
	return ratioUp(n, left, p.cell.by)
}

// pair returns the counts of the cells i-1 and i; i is not before the newest. The older one counts
// only if it is exactly one cell back.
func (p *SlidingCounters) pair(s *Counters, i int64) (older, newer int64) {
	switch i - s.newest {
	case 0:
		return s.two[(i+1)&1], s.two[i&1]
	case 1:
		return s.two[s.newest&1], 0
	}
	return 0, 0
}

// add counts n units in the cell of now.
func (p *SlidingCounters) add(s *Counters, now, n int64) {
	i := p.number(now)
	older, newer := p.pair(s, i)
	s.newest = i
	s.two[i&1], s.two[(i+1)&1] = newer+n, older
}

// remove takes up to n units from the cell of at, if it still counts.
func (p *SlidingCounters) remove(s *Counters, at, n int64) int64 {
	i := p.number(at)
	if i > s.newest || i < s.newest-1 {
		return 0
	}
	n = min(n, s.two[i&1])
	s.two[i&1] -= n
	return n
}

// after solves ceil(older*(W-e)/W) + newer <= most for the elapsed time e: in this cell, or in the
// next one, where newer becomes older; beyond it everything has passed.
func (p *SlidingCounters) after(s *Counters, now, most int64) int64 {
	i := p.number(now)
	older, newer := p.pair(s, i)
	if e := elapsed(older, most-newer, p.cell.by); e < p.cell.by {
		return max(p.begin(i)+e-now, 0)
	}
	return p.begin(i+1) + elapsed(newer, most, p.cell.by) - now
}

// elapsed returns the smallest e with ceil(n*(width-e)/width) <= most, or width if there is none
// below it.
func elapsed(n, most, width int64) int64 {
	switch {
	case n <= most:
		return 0
	case most <= 0:
		return width
	}
	hi, lo := bits.Mul64(uint64(most), uint64(width))
	q, _ := bits.Div64(hi, lo, uint64(n)) // most < n, so it fits
	return width - int64(q)
}
