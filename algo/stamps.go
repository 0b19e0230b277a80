package algo

import "fmt"

// stamps is the state of a sliding log: the instants of the last units, oldest
// first, in a ring that grows as it fills. Instants are whole nanoseconds, as
// the clock reads them. Where a window is shorter than 2^32 of them each takes
// one word of 32 bits, the low bits; the rest follows from the newest instant,
// which is less than that away. Otherwise each takes two.
type stamps struct {
	newest int64 // the latest instant in the ring, in nanoseconds
	head   int32 // place of the oldest
	size   int32
	ring   []uint32
	wide   bool // two words each
}

// log is a sliding log with immutable parameters.
type log struct {
	quota  int64
	period int64 // W, in nanoseconds
	wide   bool  // whether W needs two words
}

const (
	// mostStamps bounds the quota of a log.
	mostStamps = 1 << 16

	// fewStamps is how many a ring has room for at first.
	fewStamps = 8
)

// newLog validates; the error names field and value.
func newLog(r Rate) (*log, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	if r.Count > mostStamps {
		return nil, fmt.Errorf("rate: count is %d, want %d at most: a log keeps each unit; see Cells for more",
			r.Count, mostStamps)
	}
	return &log{quota: r.Count, period: int64(r.Period), wide: int64(r.Period) >= 1<<32}, nil
}

func (p *log) most() int64            { return p.quota }
func (p *log) window() int64          { return p.period << tickShift }
func (p *log) latest(s *stamps) int64 { return s.newest << tickShift }

func (p *log) together(a, b int64) bool { return a>>tickShift == b>>tickShift }

// adopt widens the stamps for a longer window. Everything else about a log
// follows from the instants.
func (p *log) adopt(s *stamps, _ clock) bool {
	switch {
	case !p.wide || s.wide:
	case s.size == 0:
		s.wide, s.head = true, 0 // half as many fit: head may lie beyond
	default:
		s.resize(s.capacity(), true)
	}
	return false
}

// used is how many stamps are younger than the window at now. Those that are
// not are forgotten when the next unit is added.
func (p *log) used(s *stamps, now int64) int64 {
	return int64(s.size) - int64(s.passed(now>>tickShift-p.period))
}

// owed: the debt of a log is a quota of its newest instant. What does not fit
// takes the place of older stamps, which are then not there to be given back.
func (p *log) owed(s *stamps, now, n int64) (charge int64, cut bool) {
	return min(n, p.quota), n > p.quota-p.used(s, now)
}

// add stamps n units, at most a quota. The stamps that have passed are
// forgotten, and the oldest of the others where they would be too many: more
// than a quota, and than there are since the quota was larger.
func (p *log) add(s *stamps, now, n int64) {
	at := now >> tickShift
	s.drop(s.passed(at - p.period))
	s.drop(int32(min(n, int64(s.size)+n-p.quota)))
	if need := int64(s.size) + n; need > int64(s.capacity()) {
		s.resize(int32(min(max(need, 2*int64(s.capacity()), fewStamps), max(p.quota, need))), s.wide)
	}
	s.newest = max(at, s.newest)
	for range n {
		s.set(s.size, at)
		s.size++
	}
}

// remove takes up to n stamps of the instant at, which closes the gap from the
// newer side.
func (p *log) remove(s *stamps, at, n int64) {
	at >>= tickShift
	from := s.passed(at - 1) // the first that is not older
	to := s.passed(at)       // the first that is younger
	gap := int32(min(n, int64(to-from)))
	for i := from; i+gap < s.size; i++ {
		s.set(i, s.get(i+gap))
	}
	s.size -= gap
}

// after is the time from now until no more than most units weigh: until the
// unit that is one too many has passed.
func (p *log) after(s *stamps, now, most int64) int64 {
	i := int64(s.size) - most - 1
	if i < 0 {
		return 0
	}
	return max(s.get(int32(i))+p.period-now>>tickShift, 0) << tickShift
}

// passed is how many stamps are at or before at, by bisection.
func (s *stamps) passed(at int64) int32 {
	low, high := int32(0), s.size
	for low < high {
		middle := (low + high) / 2
		if s.get(middle) <= at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// drop forgets the n oldest.
func (s *stamps) drop(n int32) {
	if n > 0 {
		s.head = s.place(n)
		s.size -= n
	}
}

// capacity is how many stamps the ring has room for.
func (s *stamps) capacity() int32 {
	if s.wide {
		return int32(len(s.ring) / 2)
	}
	return int32(len(s.ring))
}

// place is where the i-th oldest stands.
func (s *stamps) place(i int32) int32 {
	if i += s.head; i >= s.capacity() {
		i -= s.capacity()
	}
	return i
}

func (s *stamps) get(i int32) int64 {
	i = s.place(i)
	if s.wide {
		return int64(s.ring[2*i]) | int64(s.ring[2*i+1])<<32
	}
	return s.newest - int64(uint32(s.newest)-s.ring[i])
}

func (s *stamps) set(i int32, at int64) {
	i = s.place(i)
	if s.wide {
		s.ring[2*i], s.ring[2*i+1] = uint32(at), uint32(at>>32)
		return
	}
	s.ring[i] = uint32(at)
}

// resize moves the stamps to a ring with room for n.
func (s *stamps) resize(n int32, wide bool) {
	to := stamps{newest: s.newest, size: s.size, wide: wide}
	words := n
	if wide {
		words *= 2
	}
	to.ring = make([]uint32, words)
	for i := range s.size {
		to.set(i, s.get(i))
	}
	*s = to
}

// inheritStamps copies the instants and keeps the ring of the heir where it is
// large enough.
func inheritStamps(heir, from *stamps) {
	ring := heir.ring
	if len(ring) < len(from.ring) {
		ring = make([]uint32, len(from.ring))
	}
	*heir = stamps{newest: from.newest, ring: ring, wide: from.wide}
	for i := range from.size {
		heir.set(i, from.get(i))
		heir.size++
	}
}
