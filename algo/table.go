package algo

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A table keeps one word of state for each key, in bounded memory, with no
// background work.
//
// It holds flat 16-byte slots in groups of eight. A key lives in one of two
// groups that its hash picks. There are two slots for each key of MaxKeys, so
// that two full groups at once are rare even when the table is as full as it
// may be. A slot is dead when its word lies below the caller's horizon, which
// for a TAT is now: such a word says no more than absence does, so expiry
// needs no timer, and a newcomer may take the slot.
//
// Words are read and swapped without a lock. Taking a slot is a swap too, from
// the dead word to retired, so it cannot race with a charge: one of the two
// swaps loses and starts over. Charges to a slot only ever see words above the
// dead one that was retired. Inserting holds the key's stripe, so a key can
// never get two slots.
//
// When both groups are full of live keys, evicting one would forgive its debt,
// and an attacker who rotates keys would never be limited. So newcomers share
// an overflow word with everyone of their stripe, and take its debt along when
// they get a slot later. Every admission is charged to exactly one word.
type table struct {
	seed    maphash.Seed
	slots   []slot
	groups  uint64
	onFull  FullPolicy
	spilled atomic.Uint64 // decisions that found no slot
	nowhere slot          // stands for the slot of a key that has none
	stripes [stripeCount]stripe
}

const (
	groupSize   = 8
	stripeCount = 256

	// retired is the word of a slot that is changing hands.
	retired = math.MinInt64
)

// slot: id is the seeded 64-bit hash of the key, in place of the key itself.
// Two of a million keys share one with odds of 2.7e-8; they would share a
// limit.
type slot struct {
	id   atomic.Uint64
	word atomic.Int64
}

// stripe serialises the insertions of its keys and holds the word that they
// share when the table is full.
type stripe struct {
	table  *table
	mu     sync.Mutex
	shared atomic.Int64
	births atomic.Int64 // insertions so far
	refunds
	_ [8]byte // 64 bytes: one cache line a stripe
}

// outcome of a swap.
type swapped uint8

const (
	done swapped = iota // the word is the new one
	lost                // somebody else changed it: load again
	full                // a new key, no slot, and the policy is not to share
)

// newTable makes room for at least maxKeys live keys at 32 bytes each.
func newTable(maxKeys int, onFull FullPolicy) *table {
	groups := (2*uint64(maxKeys) + groupSize - 1) / groupSize
	groups = max(groups, 2)
	t := &table{
		seed:   maphash.MakeSeed(),
		slots:  make([]slot, groups*groupSize),
		groups: groups,
		onFull: onFull,
	}
	for i := range t.stripes {
		t.stripes[i].table = t
	}
	return t
}

// hash identifies a key. The seed is secret, so nobody can make keys collide
// on purpose. 0 is kept for free slots.
func (t *table) hash(key string) uint64 {
	if id := maphash.String(t.seed, key); id != 0 {
		return id
	}
	return 1
}

func (t *table) stripe(id uint64) *stripe { return &t.stripes[id%stripeCount] }

// candidates are the first slots of the two groups that may hold id. They may
// be the same one.
func (t *table) candidates(id uint64) (a, b uint64) {
	a, _ = bits.Mul64(id, t.groups)
	b, _ = bits.Mul64(id*0x9e3779b97f4a7c15, t.groups)
	return a * groupSize, b * groupSize
}

// find returns the slot of id, or &t.nowhere, whose id is no key's.
func (t *table) find(id uint64) *slot {
	if i := t.index(id); i >= 0 {
		return &t.slots[i]
	}
	return &t.nowhere
}

// index returns where in slots id stands, or -1.
func (t *table) index(id uint64) int {
	a, b := t.candidates(id)
	if i := scan(t.slots[a:][:groupSize], id); i >= 0 {
		return int(a) + i
	}
	if i := scan(t.slots[b:][:groupSize], id); i >= 0 {
		return int(b) + i
	}
	return -1
}

func scan(group []slot, id uint64) int {
	for i := range group {
		if s := &group[i]; s.id.Load() == id && s.word.Load() != retired {
			return i
		}
	}
	return -1
}

// insert gives the key of c a slot with the word next, or does what the policy
// says when there is none. It is lost if old, on which next was computed, is no
// longer the word of the key, or may have been another in between.
func (t *table) insert(c cell, old, next, horizon int64) swapped {
	st := c.stripe
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.births.Load() != c.births || st.shared.Load() != old {
		return lost
	}
	if i := t.take(c.id, horizon); i >= 0 {
		t.slots[i].word.Store(next)
		// Last: whoever sees the new number sees the slot as well.
		st.births.Add(1)
		return done
	}
	t.spilled.Add(1)
	if t.onFull != Overflow {
		return full
	}
	st.shared.Store(next)
	return done
}

// take retires a free or dead slot and puts id there, or returns -1. The
// caller holds the stripe of id and stores the word.
func (t *table) take(id uint64, horizon int64) int {
	a, b := t.candidates(id)
	for _, first := range [2]uint64{a, b} {
		group := t.slots[first:][:groupSize]
		for i := range group {
			s := &group[i]
			w := s.word.Load()
			if w != retired && w < horizon && s.word.CompareAndSwap(w, retired) {
				s.id.Store(id)
				return int(first) + i
			}
		}
	}
	return -1
}

// soonest is the lowest word in the groups of id: the next slot to die there.
func (t *table) soonest(id uint64) int64 {
	lowest := int64(math.MaxInt64)
	a, b := t.candidates(id)
	for _, first := range [2]uint64{a, b} {
		group := t.slots[first:][:groupSize]
		for i := range group {
			if w := group[i].word.Load(); w != retired {
				lowest = min(lowest, w)
			}
		}
	}
	return lowest
}

// live counts the keys whose word is at or above horizon. It walks the table.
func (t *table) live(horizon int64) (n int) {
	for i := range t.slots {
		if t.slots[i].word.Load() >= horizon {
			n++
		}
	}
	return n
}
