package admin

import (
	"cmp"
	"slices"
	"sync"
)

// top finds the keys that are limited most in the last minutes. It has a sketch
// for each of five minutes, the one of the current minute included, so it
// covers four to five.
type top struct {
	mu       sync.Mutex
	sketches [span / 60]sketch
}

// minuteOf numbers the minute of a second, from 1.
func minuteOf(second uint32) uint32 { return second/60 + 1 }

// limited is a key of a policy.
type limited struct {
	policy *series
	hash   uint64
}

// note counts a denial.
func (t *top) note(k limited, now uint32) {
	number := minuteOf(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sketches[number%uint32(len(t.sketches))]
	if s.number != number {
		s.clear(number)
	}
	s.note(k)
}

// counted is a key and how often it was limited: at most n times, and at least
// n-over.
type counted struct {
	limited
	n, over uint64
}

// most returns the n keys that were limited most, the worst first.
func (t *top) most(n int, now uint32) []counted {
	sums := map[limited]counted{}
	t.mu.Lock()
	for i := range t.sketches {
		s := &t.sketches[i]
		if s.used == 0 || s.number+uint32(len(t.sketches)) <= minuteOf(now) {
			continue
		}
		for _, it := range s.items[:s.used] {
			sum := sums[it.limited]
			sums[it.limited] = counted{it.limited, sum.n + it.n, sum.over + it.over}
		}
	}
	t.mu.Unlock()
	all := make([]counted, 0, len(sums))
	for _, c := range sums {
		if c.n > c.over { // else it may have come by once
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.n-b.over, a.n-a.over), cmp.Compare(a.policy.name, b.policy.name), cmp.Compare(a.hash, b.hash))
	})
	return all[:min(n, len(all))]
}

// tracked is the number of keys that a sketch distinguishes. Each that makes up more than
// one in so many of all denials is among them.
const tracked = 128

// sketch is the space-saving algorithm (Metwally, Agrawal, El Abbadi: Efficient
// computation of frequent and top-k elements in data streams, 2005): a key that
// is not known takes the place and the count of the one counted least, and that
// count is by how much its own may be too high.
type sketch struct {
	number uint32 // of the minute; 0: never used
	used   int
	index  map[limited]uint8
	items  [tracked]counted
	heap   [tracked]uint8 // items, the one counted least on top
	at     [tracked]uint8 // position of an item in the heap
}

func (s *sketch) clear(number uint32) {
	if s.index == nil {
		s.index = make(map[limited]uint8, tracked)
	}
	clear(s.index)
	s.number, s.used = number, 0
}

func (s *sketch) note(k limited) {
	i, known := s.index[k]
	switch {
	case known:
	case s.used < tracked:
		i = uint8(s.used)
		s.items[i] = counted{limited: k}
		s.heap[i], s.at[i] = i, i
		s.used++
		s.index[k] = i
		s.rise(int(i))
	default:
		i = s.heap[0]
		delete(s.index, s.items[i].limited)
		s.items[i] = counted{limited: k, n: s.items[i].n, over: s.items[i].n}
		s.index[k] = i
	}
	s.items[i].n++
	s.sink(int(s.at[i]))
}

// sink moves the item at a place of the heap down to where it belongs.
func (s *sketch) sink(p int) {
	for {
		least := 2*p + 1
		if least >= s.used {
			return
		}
		if least+1 < s.used && s.count(least+1) < s.count(least) {
			least++
		}
		if s.count(p) <= s.count(least) {
			return
		}
		s.swap(p, least)
		p = least
	}
}

// rise moves a new item, which counts nothing yet, up to where it belongs.
func (s *sketch) rise(p int) {
	for p > 0 && s.count(p) < s.count((p-1)/2) {
		s.swap(p, (p-1)/2)
		p = (p - 1) / 2
	}
}

func (s *sketch) count(p int) uint64 { return s.items[s.heap[p]].n }

func (s *sketch) swap(p, q int) {
	s.heap[p], s.heap[q] = s.heap[q], s.heap[p]
	s.at[s.heap[p]], s.at[s.heap[q]] = uint8(p), uint8(q)
}
