package algo

import (
	"fmt"
	"math/bits"
)

// tally is the state of a sliding window that counts in cells: units in each of
// the last c+1 cells. The cells lie at multiples of their width.
type tally struct {
	width  int64    // of the cells that were counted in; 0: never used
	newest int64    // number of the newest cell that was counted in
	sum    int64    // of all counts
	two    [2]int64 // the counts of two cells, cell i at i%2
	more   []int64  // the counts of more than two, cell i at i%len
}

// sliding is a sliding window with immutable parameters. With weighted there
// are two cells as wide as the window, and the older one weighs by the share of
// it that the window still covers:
//
//	used = ceil(older * (W - elapsed) / W) + newer
//
// It is rounded up because with floor a limit of 1/s would admit at 999 ms and
// again at 1001 ms. Without weighted all of c+1 cells weigh in full. They cover
// a window and more at any time, so no window holds more than the quota.
type sliding struct {
	quota    int64
	period   int64   // W
	cells    int64   // c
	weighted bool    // c is 1
	cell     divisor // its width, W/c rounded up
}

// newSliding validates; the error names field and value. No cells means two
// weighted counters.
func newSliding(r Rate, cells int) (*sliding, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	p := &sliding{quota: r.Count, period: toTicks(r.Period), cells: int64(cells)}
	if cells == 0 {
		p.cells, p.weighted = 1, true
	}
	if p.cells > int64(r.Period) {
		return nil, fmt.Errorf("cells is %d: more than the %v of the period have nanoseconds", cells, r.Period)
	}
	p.cell = newDivisor((p.period + p.cells - 1) / p.cells)
	return p, nil
}

func (p *sliding) most() int64   { return p.quota }
func (p *sliding) window() int64 { return p.period }

// number is the number of the cell that holds now. The first begins when the
// limiter was made, at ticksPerNano.
func (p *sliding) number(now int64) int64 { return p.cell.quo(max(now-ticksPerNano, 0)) }

// begin is the first instant of cell i.
func (p *sliding) begin(i int64) int64 { return i*p.cell.by + ticksPerNano }

func (p *sliding) counts(s *tally) []int64 {
	if p.cells == 1 {
		return s.two[:]
	}
	return s.more
}

// adopt carries over, into one cell, what still weighs of a state that was
// counted in cells of another width.
func (p *sliding) adopt(s *tally, c clock) bool {
	if s.width == p.cell.by {
		return false
	}
	var newest, carry int64
	if s.width != 0 {
		was := *p
		was.cell = newDivisor(s.width)
		now := max(c.now(), was.latest(s))
		newest, carry = p.number(now), min(was.used(s, now), 2*p.quota)
	}
	if p.cells > 1 && s.more == nil {
		s.more = make([]int64, p.cells+1)
	}
	clear(p.counts(s))
	s.width, s.newest, s.sum = p.cell.by, newest, carry
	p.counts(s)[newest%(p.cells+1)] = carry
	return carry > 0
}

// latest is the beginning of the newest cell: somebody has read so late a time.
// It stays when all that was counted is given back, because the cells that had
// passed by then are forgotten, and would be missing at an earlier instant.
func (p *sliding) latest(s *tally) int64 { return p.begin(s.newest) }

// used is how many units weigh at now, which is not before latest.
func (p *sliding) used(s *tally, now int64) (sum int64) {
	i := p.number(now)
	if p.weighted {
		older, newer := p.pair(s, i)
		return weigh(older, min(p.begin(i+1)-now, p.cell.by), p.cell.by) + newer
	}
	sum = s.sum
	counts := p.counts(s)
	ring := int64(len(counts))
	for k := max(s.newest-p.cells, 0); k < i-p.cells && k <= s.newest; k++ {
		sum -= counts[k%ring] // it has passed
	}
	return sum
}

// pair returns the counts of the cells i-1 and i, where i is not before the
// newest. The older one counts only if it is exactly one cell back.
func (p *sliding) pair(s *tally, i int64) (older, newer int64) {
	switch i - s.newest {
	case 0:
		return s.two[(i+1)&1], s.two[i&1]
	case 1:
		return s.two[s.newest&1], 0
	}
	return 0, 0
}

// weigh is ceil(n * left / width).
func weigh(n, left, width int64) int64 {
	if n == 0 || left == width {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(left))
	lo, carry := bits.Add64(lo, uint64(width-1), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(width))
	return int64(q)
}

// owed: a state is made to weigh two quotas at most.
func (p *sliding) owed(s *tally, now, n int64) (charge int64, cut bool) {
	room := max(2*p.quota-p.used(s, now), 0)
	return min(n, room), n > room
}

// add counts n units in the cell of now, and forgets the cells that have
// passed.
func (p *sliding) add(s *tally, now, n int64) {
	counts, i := p.counts(s), p.number(now)
	ring := int64(len(counts))
	if s.sum == 0 || i-s.newest >= ring {
		clear(counts)
		s.newest, s.sum = i, 0
	}
	for s.newest < i {
		s.newest++
		s.sum -= counts[s.newest%ring]
		counts[s.newest%ring] = 0
	}
	counts[i%ring] += n
	s.sum += n
}

// remove takes up to n units from the cell of at, if it is still counted.
func (p *sliding) remove(s *tally, at, n int64) {
	counts, i := p.counts(s), p.number(at)
	if i <= s.newest && i > s.newest-int64(len(counts)) {
		c := &counts[i%int64(len(counts))]
		n = min(n, *c)
		*c -= n
		s.sum -= n
	}
}

func (p *sliding) together(a, b int64) bool { return p.number(a) == p.number(b) }

// after is the time from now until no more than most units weigh.
func (p *sliding) after(s *tally, now, most int64) int64 {
	if p.weighted {
		return p.afterWeighted(s, now, most)
	}
	// The cells that still weigh, newest first: the first one that is too much
	// together with all newer ones must pass.
	counts, i := p.counts(s), p.number(now)
	ring := int64(len(counts))
	for k := s.newest; k >= 0 && k >= i-p.cells && k > s.newest-ring; k-- {
		if most -= counts[k%ring]; most < 0 {
			return p.begin(k+p.cells+1) - now
		}
	}
	return 0
}

// afterWeighted solves ceil(older*(W-e)/W) + newer <= most for the elapsed
// time e: in this cell, else in the next one, where newer is the older, else
// everything has passed.
func (p *sliding) afterWeighted(s *tally, now, most int64) int64 {
	i := p.number(now)
	older, newer := p.pair(s, i)
	if e := elapsed(older, most-newer, p.cell.by); e < p.cell.by {
		return max(p.begin(i)+e-now, 0)
	}
	return p.begin(i+1) + elapsed(newer, most, p.cell.by) - now
}

// elapsed is the smallest e with ceil(n*(width-e)/width) <= most, and width if
// there is none below it.
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
