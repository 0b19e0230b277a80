package decide

// Counters is the state of a sliding window that counts units in cells: in two
// ([SlidingCounters]) or in more ([SlidingCells]). Cells begin at multiples of
// their width.
type Counters struct {
	width      int64    // of the cells that were counted in; 0: never used
	generation int64    // of the parameters that were counted under
	newest     int64    // number of the newest cell that was counted in
	two        [2]int64 // the counts of two cells, cell i at i%2; of more, their sum
	more       []int64  // the counts of more than two, cell i at i%len
}

// Inherit copies the content of from to s and keeps the memory of s.
func (s *Counters) Inherit(from *Counters) {
	more := s.more
	*s = *from
	s.more = more
	if len(from.more) == 0 {
		clear(more)
		return
	}
	more = append(more[:0], from.more...)
	s.more = more
}

// Spent returns the counted units; some may have expired.
func (s *Counters) Spent() int64 { return s.two[0] + s.two[1] }

// grid places the cells.
type grid struct {
	cell       divisor // the width
	origin     int64   // where cell 0 begins
	generation int64   // grows with each change of the width
}

// number returns the number of the cell that holds now.
func (g *grid) number(now int64) int64 { return g.cell.quo(max(now-g.origin, 0)) }

// begin returns the first instant of cell i.
func (g *grid) begin(i int64) int64 { return i*g.cell.by + g.origin }

// succeed makes g the grid that replaces old.
func (g *grid) succeed(old *grid) {
	g.generation = old.generation
	if old.cell.by != g.cell.by {
		g.generation++
	}
}

// latest returns the beginning of the newest cell, which a clock has reached. It stays when all
// units are given back: cells that had passed by then are forgotten, and would be missing at an
// earlier instant.
func (g *grid) latest(s *Counters) int64 { return g.begin(s.newest) }

func (g *grid) together(a, b int64) bool { return g.number(a) == g.number(b) }

// current reports whether s was counted in these cells, or never used.
func (g *grid) current(s *Counters) bool { return s.generation == g.generation || s.width == 0 }

// counting is what sliding windows of any cells have in common.
type counting struct {
	quota int64
	grid
	window slidingWindow[Counters] // that contains this
}

// Limit returns the quota.
func (c *counting) Limit() int64 { return c.quota }

// Answer charges n units if they fit.
func (c *counting) Answer(s *Counters, now, n int64) (*Counters, Answer, Quota) {
	a, q := answerSliding(c.window, s, now, n)
	return s, a, q
}

// Peek is Answer without the charge.
func (c *counting) Peek(s *Counters, now, n int64) (Answer, Quota) {
	return peekSliding(c.window, s, now, n)
}

// Admit charges n units if they fit.
func (c *counting) Admit(s *Counters, now, n int64) (*Counters, bool) {
	return s, admitSliding(c.window, s, now, n)
}

// Charge describes a charge of n units that s counted at now.
func (c *counting) Charge(s *Counters, now, n, _ int64) Charge {
	return Charge{N: n, At: max(now, c.latest(s)), A: n, B: c.generation}
}

// MaxRefund returns 0: charges do not move.
func (c *counting) MaxRefund(Charge, int64) int64 { return 0 }

// Refund gives n units of a charge back, as far as their cell still holds them. The
// second result is in units.
func (c *counting) Refund(s *Counters, of Charge, now, n, _ int64) (*Counters, int64) {
	if of.B != s.generation || !c.current(s) {
		return s, 0
	}
	return s, refundSliding(c.window, s, of, now, n)
}

// ForceCharge charges n units more, until two quotas weigh.
func (c *counting) ForceCharge(s *Counters, _ Charge, now, n int64) (*Counters, bool) {
	c.window.adopt(s, now)
	now = max(now, c.latest(s))
	room := max(2*c.quota-c.window.used(s, now), 0)
	if n > 0 && room > 0 {
		c.window.add(s, now, min(n, room))
	}
	return s, n > room
}

// Reset forgets all units.
func (c *counting) Reset(s *Counters, _ int64) *Counters {
	s.Inherit(new(Counters))
	return s
}

// Expiry returns the instant from which s is equivalent to the zero state.
func (c *counting) Expiry(s *Counters, now int64) int64 { return expirySliding(c.window, s, now) }
