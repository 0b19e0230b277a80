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
// one of the overflow words, which their hash picks, and take its debt along
// when they get a slot later. Every admission is charged to exactly one word.
// There is an overflow word for every 64 keys, so that a few that found no room
// hardly ever stand in the way of others, and all of them together add little
// to what the table admits.
type table struct {
	seed    maphash.Seed
	slots   []slot
	groups  uint64
	onFull  FullPolicy
	spilled atomic.Uint64 // charges to overflow words
	shared  []atomic.Int64
	nowhere slot // stands for the slot of a key that has none
	stripes [stripeCount]stripe
}

const (
	groupSize   = 8
	stripeCount = 256 // a power of two; so is the number of overflow words

	// keysPerShared is how many keys of MaxKeys there are to an overflow word.
	keysPerShared = 64

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

// stripe serialises the insertions of its keys and the writes to the overflow
// words that they share.
type stripe struct {
	table  *table
	mu     sync.Mutex
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
		shared: make([]atomic.Int64, sharedCount(maxKeys)),
	}
	for i := range t.stripes {
		t.stripes[i].table = t
	}
	return t
}

// sharedCount is how many overflow words there are: enough for all stripes.
func sharedCount(maxKeys int) int {
	n := stripeCount
	for n < maxKeys/keysPerShared {
		n *= 2
	}
	return n
}

// overflow is the word that id shares when it finds no slot.
func (t *table) overflow(id uint64) *atomic.Int64 {
	return &t.shared[id&uint64(len(t.shared)-1)]
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
	shared := t.overflow(c.id)
	if st.births.Load() != c.births || shared.Load() != old {
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
	shared.Store(next)
	return done
}

// take retires a free or dead slot and puts id there, or returns -1. The
// caller holds the stripe of id and stores the word.
//
// A key goes to its first group, where it is found with one cache line less,
// until that is nearly full; then to the one with more room. So both are full
// only when hardly any slot is left anywhere.
func (t *table) take(id uint64, horizon int64) int {
	a, b := t.candidates(id)
	if free := t.free(a, horizon); free < 3 && free < t.free(b, horizon) {
		a, b = b, a
	}
	if i := t.takeFrom(a, id, horizon); i >= 0 {
		return i
	}
	return t.takeFrom(b, id, horizon)
}

// free counts the slots that can be taken in the group that begins at first.
func (t *table) free(first uint64, horizon int64) (n int) {
	group := t.slots[first:][:groupSize]
	for i := range group {
		if w := group[i].word.Load(); w != retired && w < horizon {
			n++
		}
	}
	return n
}

// takeFrom prefers the slot that is dead for longest, or was never used: its
// key is the least likely to come back.
func (t *table) takeFrom(first, id uint64, horizon int64) int {
	group := t.slots[first:][:groupSize]
	for {
		oldest, at := horizon, -1
		for i := range group {
			if w := group[i].word.Load(); w != retired && w < oldest {
				oldest, at = w, i
			}
		}
		if at < 0 {
			return -1
		}
		if s := &group[at]; s.word.CompareAndSwap(oldest, retired) {
			s.id.Store(id)
			return int(first) + at
		}
	}
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
