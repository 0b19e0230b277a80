package decide

// Timestamps is the state of a [SlidingLog]: the instants of the last units, oldest first, in a
// ring that grows as it fills. Instants are whole steps, as the clock reads them. If a window is
// shorter than 2^32 steps, each takes one word, its low 32 bits; the rest follows from the newest
// instant, which is less than that away. Otherwise each takes two.
type Timestamps struct {
	newest int64 // the latest instant in the ring, in steps
	head   int32 // place of the oldest
	size   int32
	ring   []uint32
	wide   bool // two words each
}

// fewTimestamps is the first capacity of a ring.
const fewTimestamps = 8

// Inherit copies the content of from to s and keeps the ring of s where it is
// large enough; a new one is no larger than from needs.
func (s *Timestamps) Inherit(from *Timestamps) {
	ring, need := s.ring, len(from.ring)
	for room := from.capacity(); room > fewTimestamps && room/2 >= from.size; room /= 2 {
		need = (need + 1) / 2
	}
	if from.wide {
		need += need % 2
	}
	if len(ring) < need {
		ring = make([]uint32, need)
	}
	*s = Timestamps{newest: from.newest, ring: ring, wide: from.wide}
	for i := range from.size {
		s.set(i, from.get(i))
		s.size++
	}
}

// Spent returns the number of timestamps; some may have expired.
func (s *Timestamps) Spent() int64 { return int64(s.size) }

// passed returns how many timestamps are at or before at, by bisection.
func (s *Timestamps) passed(at int64) int32 {
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
func (s *Timestamps) drop(n int32) {
	if n > 0 {
		s.head = s.place(n)
		s.size -= n
	}
}

// capacity returns the number of timestamps that fit the ring.
func (s *Timestamps) capacity() int32 {
	if s.wide {
		return int32(len(s.ring) / 2)
	}
	return int32(len(s.ring))
}

// place returns the index of the i-th oldest in the ring.
func (s *Timestamps) place(i int32) int32 {
	if i += s.head; i >= s.capacity() {
		i -= s.capacity()
	}
	return i
}

func (s *Timestamps) get(i int32) int64 {
	i = s.place(i)
	if s.wide {
		return int64(s.ring[2*i]) | int64(s.ring[2*i+1])<<32
	}
	return s.newest - int64(uint32(s.newest)-s.ring[i])
}

func (s *Timestamps) set(i int32, at int64) {
	i = s.place(i)
	if s.wide {
		s.ring[2*i], s.ring[2*i+1] = uint32(at), uint32(at>>32)
		return
	}
	s.ring[i] = uint32(at)
}

// resize moves the timestamps to a ring with room for n.
func (s *Timestamps) resize(n int32, wide bool) {
	to := Timestamps{newest: s.newest, size: s.size, wide: wide}
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
