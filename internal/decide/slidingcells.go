package decide

import "fmt"

// SlidingCells is a sliding window that counts in cells of a c-th of the period, rounded up. c+1
// cells weigh in full and always cover a whole window, so no window holds more than the quota.
type SlidingCells struct {
	counting
	cells int64 // c
}

// NewSlidingCells validates; the error names field and value. origin is an
// instant at which a cell begins; none before it is counted.
func NewSlidingCells(r Rate, cells int, origin int64) (*SlidingCells, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	c, period := int64(cells), r.Ticks(r.Period)
	switch {
	case c < 1:
		return nil, fmt.Errorf("cells is %d, want 1 or more", cells)
	case c > period/r.stepTicks():
		return nil, fmt.Errorf("cells is %d, want at most %d in a period of %v", cells, period/r.stepTicks(), r.Period)
	}
	g := grid{cell: newDivisor((period + c - 1) / c), origin: origin, generation: 1}
	p := &SlidingCells{counting{quota: r.Count, grid: g}, c}
	p.window = p
	return p, nil
}

// Succeed returns p as the limit that replaces old, with as many cells: the units that a
// key has spent stay spent. When the period changes, the remaining weight counts as if
// it had been spent when the key is next used.
func (p *SlidingCells) Succeed(old *SlidingCells) *SlidingCells {
	next := *p
	next.window = &next
	next.succeed(&old.grid)
	return &next
}

// Plausible reports whether s was counted in cells of this width.
func (p *SlidingCells) Plausible(s *Counters, _ int64) bool { return p.current(s) }

// Clamp carries the remaining weight of other cells into the current one.
func (p *SlidingCells) Clamp(s *Counters, now int64) (*Counters, bool) {
	p.adopt(s, now)
	return s, false
}

func (p *SlidingCells) adopt(s *Counters, now int64) {
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
	if s.more == nil {
		s.more = make([]int64, p.cells+1)
	}
	clear(s.more)
	s.width, s.generation, s.newest = p.cell.by, p.generation, newest
	s.two[0], s.more[newest%(p.cells+1)] = carry, carry
}

// used returns how many units weigh at now, which is not before latest.
func (p *SlidingCells) used(s *Counters, now int64) int64 {
	i, sum, ring := p.number(now), s.two[0], int64(len(s.more))
	for k := max(s.newest-p.cells, 0); k < i-p.cells && k <= s.newest; k++ {
		sum -= s.more[k%ring] // it has passed
	}
	return sum
}

// add counts n units in the cell of now and forgets the cells that have passed.
func (p *SlidingCells) add(s *Counters, now, n int64) {
	i, ring := p.number(now), int64(len(s.more))
	sum := &s.two[0]
	if *sum == 0 || i-s.newest >= ring {
		clear(s.more)
		s.newest, *sum = i, 0
	}
	for s.newest < i {
		s.newest++
		*sum -= s.more[s.newest%ring]
		s.more[s.newest%ring] = 0
	}
	s.more[i%ring] += n
	*sum += n
}

// remove takes up to n units from the cell of at, if it still counts.
func (p *SlidingCells) remove(s *Counters, at, n int64) int64 {
	i, ring := p.number(at), int64(len(s.more))
	if i > s.newest || i <= s.newest-ring {
		return 0
	}
	c := &s.more[i%ring]
	n = min(n, *c)
	*c -= n
	s.two[0] -= n
	return n
}

// after returns the span from now until at most most units weigh: until the newest cell passes that
// is too much together with all newer ones.
func (p *SlidingCells) after(s *Counters, now, most int64) int64 {
	i, ring := p.number(now), int64(len(s.more))
	for k := s.newest; k >= 0 && k >= i-p.cells && k > s.newest-ring; k-- {
		if most -= s.more[k%ring]; most < 0 {
			return p.begin(k+p.cells+1) - now
		}
	}
	return 0
}
