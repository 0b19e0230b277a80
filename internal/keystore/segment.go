package keystore

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// slot holds the seeded 64-bit hash of a key, in place of the key itself, and
// its word. Two of a million keys share a hash with a probability of 2.7e-8;
// they would share a limit.
type slot struct {
	id   atomic.Uint64
	word atomic.Int64
}

// segment is a part of a table: slots in groups of eight. The hash of a key picks two groups, and
// the key lives in one of them.
//
// A slot is expired when its word lies below now: such a word is equivalent to an absent key. So
// expiry needs no timer: a new key takes the slot. Words are read and swapped without a lock.
// Taking a slot is a swap too, from the old word to a tombstone, so it cannot race with a charge:
// one of the two swaps fails and starts over. It is done with the mutex held, so a key never gets
// two slots.
type segment[V any] struct {
	slots  []slot
	values []V // beside the slots, and one for a new key while it has no slot
	groups uint32
	depth  uint8 // leading bits of the hash that all of its keys share

	_         [8]byte // no decision about a known key reads what insertions write
	mu        sync.Mutex
	inserts   atomic.Int64
	splitting atomic.Bool
	_         [40]byte
}

const (
	groupSize = 8

	// mostGroups fill a size class of the allocator, 9472 bytes. A group fills two cache
	// lines.
	mostGroups = 74

	// smallGroups are the groups of the first segment, until it is full: most limiters
	// have few keys.
	smallGroups = 1

	// tombstone is the word of a slot that is changing hands.
	tombstone = math.MinInt64
)

// noSlot is the slot of every key that has none. Its id is no key's.
var noSlot slot

func newSegment[V any](groups uint32, depth uint8) *segment[V] {
	n := groups * groupSize
	return &segment[V]{slots: make([]slot, n), values: make([]V, n+1), groups: groups, depth: depth}
}

// candidates returns the first slots of the two groups that may hold id. (The leading bits have
// already chosen the segment.) A single group counts as both.
func (g *segment[V]) candidates(id uint64) (a, b uint64) { return candidates(id, g.groups) }

func candidates(id uint64, groups uint32) (a, b uint64) {
	if groups == 1 {
		return 0, 0
	}
	a = candidate(id, groups)
	b, _ = bits.Mul64(bits.RotateLeft64(id, 16), uint64(groups)-1)
	if b *= groupSize; b >= a {
		b += groupSize
	}
	return a, b
}

// candidate returns the first slot of id's first group.
func candidate(id uint64, groups uint32) uint64 {
	group, _ := bits.Mul64(bits.RotateLeft64(id, 32), uint64(groups))
	return group * groupSize
}

// find returns the slot of id, or &noSlot.
func (g *segment[V]) find(id uint64) *slot { return find(g.slots, g.groups, id) }

func find(slots []slot, groups uint32, id uint64) *slot {
	if s := &slots[candidate(id, groups)|id%groupSize]; s.id.Load() == id && s.word.Load() != tombstone {
		return s // in most cases, and with one cache line of the slots
	}
	if i := index(slots, groups, id); i >= 0 {
		return &slots[i]
	}
	return &noSlot
}

// has reports whether s is a slot of g.
func (g *segment[V]) has(s *slot) bool {
	for i := range g.slots {
		if &g.slots[i] == s {
			return true
		}
	}
	return false
}

// index returns the index of the slot of id, or -1.
func (g *segment[V]) index(id uint64) int { return index(g.slots, g.groups, id) }

func index(slots []slot, groups uint32, id uint64) int {
	a, b := candidates(id, groups)
	if i := match(slots, a, id); i >= 0 {
		return i
	}
	return match(slots, b, id)
}

// match compares all slots of a group without a branch: stopping at the first match takes longer,
// because no processor predicts it.
func match(slots []slot, first, id uint64) int {
	group := (*[groupSize]slot)(slots[first:])
	found := same(group[0].id.Load(), id) | same(group[1].id.Load(), id)<<1 |
		same(group[2].id.Load(), id)<<2 | same(group[3].id.Load(), id)<<3 |
		same(group[4].id.Load(), id)<<4 | same(group[5].id.Load(), id)<<5 |
		same(group[6].id.Load(), id)<<6 | same(group[7].id.Load(), id)<<7
	if found == 0 {
		return -1
	}
	at := bits.TrailingZeros8(found)
	if group[at%groupSize].word.Load() == tombstone {
		return -1
	}
	return int(first) + at
}

func same(a, b uint64) (bit uint8) {
	if a == b {
		bit = 1
	}
	return bit
}

// take leaves the tombstone in a free or expired slot for id and returns its
// index, or -1. The caller holds the mutex, and stores id and word.
//
// A key goes to its first group, where it is found with one cache line less,
// until that is nearly full; then to the one with more room. So both are full
// only when hardly any slot is left anywhere. In its group it takes the slot that
// its last bits pick, if it can.
func (g *segment[V]) take(id uint64, expiredBefore int64) int {
	a, b := g.candidates(id)
	if free := g.free(a, expiredBefore); free < 3 && free < g.free(b, expiredBefore) {
		a, b = b, a
	}
	own := &g.slots[a|id%groupSize]
	if w := own.word.Load(); w < expiredBefore && own.word.CompareAndSwap(w, tombstone) {
		return int(a | id%groupSize)
	}
	if i := g.takeFrom(a, expiredBefore); i >= 0 {
		return i
	}
	return g.takeFrom(b, expiredBefore)
}

// free counts the slots that can be taken in the group that begins at first.
func (g *segment[V]) free(first uint64, expiredBefore int64) (n int) {
	group := g.slots[first:][:groupSize]
	for i := range group {
		if group[i].word.Load() < expiredBefore {
			n++
		}
	}
	return n
}

// takeFrom prefers the slot that expired first, or was never used: its key is
// the least likely to come back.
func (g *segment[V]) takeFrom(first uint64, expiredBefore int64) int {
	for {
		at, word := g.lowest(first)
		if word >= expiredBefore {
			return -1
		}
		if g.slots[at].word.CompareAndSwap(word, tombstone) {
			return at
		}
	}
}

// spender is a value that counts its units.
type spender interface{ Spent() int64 }

// evict is take for the case that no slot has expired. It takes the slot of the key in both groups
// that has spent least, if the values record the spending; otherwise, and among equal keys, the
// slot of the key that would expire first. It returns -1 in the rare case that this slot is in use.
func (g *segment[V]) evict(id uint64) int {
	at, least, first := -1, int64(math.MaxInt64), int64(locked)
	a, b := g.candidates(id)
	for i := range 2 * groupSize {
		if i = int(a) + i; i >= int(a)+groupSize {
			i += int(b) - int(a) - groupSize
		}
		spent, word := g.spent(i)
		if spent < least || spent == least && word < first {
			at, least, first = i, spent, word
		}
	}
	if at < 0 || !g.slots[at].word.CompareAndSwap(first, tombstone) {
		return -1
	}
	if v, ok := any(&g.values[at]).(spender); ok && v.Spent() != least {
		g.slots[at].word.Store(first) // it was charged meanwhile
		return -1
	}
	return at
}

// spent returns the units spent in the value of slot i, 0 if unknown, and its word.
func (g *segment[V]) spent(i int) (spent, word int64) {
	s := &g.slots[i]
	v, ok := any(&g.values[i]).(spender)
	if !ok {
		return 0, s.word.Load()
	}
	if word, ok = hold(s, s.id.Load()); !ok {
		return math.MaxInt64, locked
	}
	spent = v.Spent()
	s.word.Store(word)
	return spent, word
}

// nextExpiry returns the lowest word in the groups of id: the next slot to expire there.
func (g *segment[V]) nextExpiry(id uint64) int64 {
	a, b := g.candidates(id)
	_, inA := g.lowest(a)
	_, inB := g.lowest(b)
	return min(inA, inB)
}

// lowest finds the lowest word in the group that begins at first. Without the mutex a slot may be
// changing hands.
func (g *segment[V]) lowest(first uint64) (at int, word int64) {
	word = locked
	group := g.slots[first:][:groupSize]
	for i := range group {
		if w := group[i].word.Load(); w != tombstone && w < word {
			at, word = int(first)+i, w
		}
	}
	return at, word
}
