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

// Spent is how many units s has counted; some may have expired.
func (s *Counters) Spent() int64 { return s.two[0] + s.two[1] }

// grid is where cells begin.
type grid struct {
	cell       divisor // the width
	origin     int64   // where cell 0 begins
	generation int64   // grows with each change of the width
}

// number is the number of the cell that holds now.
func (g *grid) number(now int64) int64 { return g.cell.quo(max(now-g.origin, 0)) }

// begin is the first instant of cell i.
func (g *grid) begin(i int64) int64 { return i*g.cell.by + g.origin }

// succeed makes g the grid that replaces old.
func (g *grid) succeed(old *grid) {
	g.generation = old.generation
	if old.cell.by != g.cell.by {
		g.generation++
	}
}

// latest is the beginning of the newest cell: a clock has read so late a time.
// It stays when all that was counted is given back, because the cells that had
// passed by then are forgotten, and would be missing at an earlier instant.
func (g *grid) latest(s *Counters) int64 { return g.begin(s.newest) }

func (g *grid) together(a, b int64) bool { return g.number(a) == g.number(b) }

// charge describes a charge of n units that s counted at now.
func (g *grid) charge(s *Counters, now, n int64) Charge {
	return Charge{N: n, At: max(now, g.latest(s)), A: n, B: g.generation}
}

// current reports whether s was counted in these cells, or never used.
func (g *grid) current(s *Counters) bool { return s.generation == g.generation || s.width == 0 }
