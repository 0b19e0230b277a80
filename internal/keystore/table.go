package keystore

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A table keeps one word for each key, in bounded memory and without
// background work.
//
// It holds 16-byte slots in groups of eight. The hash of a key picks two
// groups, and the key lives in one of them. There are two slots for each key
// of MaxKeys, so that two full groups at once are rare even when MaxKeys keys
// are live. A slot is expired when its word lies below now: such a word is
// equivalent to an absent key. So expiry needs no timer, and a new key may take
// the slot.
//
// Words are read and swapped without a lock. Taking a slot is a swap too, from
// the expired word to a tombstone, so it cannot race with a charge: one of the
// two swaps fails and starts over. Inserting holds the stripe of the key, so a
// key never gets two slots.
//
// Evicting a live key would forgive its debt, and an attacker who rotates keys
// would never be limited. So when both groups are full of live keys, a new key
// shares one of the overflow words, which its hash picks, and takes the debt
// found there along when it gets a slot later. Every admission is charged to
// exactly one word. There is an overflow word for every 64 keys, so that a few
// keys without a slot hardly ever share one, and all overflow words together
// add little to what the table admits.
type table struct {
	seed       maphash.Seed
	slots      []slot
	groups     uint64
	share      bool
	overflowed atomic.Uint64 // insertions that found no slot
	overflow   []atomic.Int64
	absent     slot // the slot of every key that has none; its id is no key's
	stripes    [stripeCount]stripe
}

const (
	groupSize   = 8
	stripeCount = 256 // a power of two; so is the number of overflow words

	// keysPerOverflow is the number of keys of MaxKeys per overflow word.
	keysPerOverflow = 64

	// tombstone is the word of a slot that is changing hands.
	tombstone = math.MinInt64
)

// slot holds the seeded 64-bit hash of a key, in place of the key itself, and
// its word. Two of a million keys share a hash with a probability of 2.7e-8;
// they would share a limit.
type slot struct {
	id   atomic.Uint64
	word atomic.Int64
}

// stripe serializes the insertions of its keys and the writes to their
// overflow words.
type stripe struct {
	table   *table
	mu      sync.Mutex
	inserts atomic.Int64
	account
	_ [16]byte // 64 bytes: one cache line a stripe
}

// newTable makes room for at least maxKeys live keys at 32 bytes each.
func (t *table) init(maxKeys int, share bool, initial int64) {
	t.seed = maphash.MakeSeed()
	t.groups = max((2*uint64(maxKeys)+groupSize-1)/groupSize, 2)
	t.slots = make([]slot, t.groups*groupSize)
	t.share = share
	t.overflow = make([]atomic.Int64, overflowWords(maxKeys))
	for i := range t.overflow {
		t.overflow[i].Store(initial)
	}
	for i := range t.stripes {
		t.stripes[i].table = t
	}
}

// overflowWords is the number of overflow words, at least one per stripe.
func overflowWords(maxKeys int) int {
	n := stripeCount
	for n < maxKeys/keysPerOverflow {
		n *= 2
	}
	return n
}

// overflowIndex is the overflow word of the keys with this hash.
func (t *table) overflowIndex(id uint64) int { return int(id & uint64(len(t.overflow)-1)) }

// hash identifies a key. The seed is secret, so that no one can construct
// colliding keys. 0 is the id of a free slot.
func (t *table) hash(key string) uint64 {
	if id := maphash.String(t.seed, key); id != 0 {
		return id
	}
	return 1
}

func (t *table) stripe(id uint64) *stripe { return &t.stripes[id%stripeCount] }

// candidates are the first slots of the two groups that may hold id. The two
// may be the same.
func (t *table) candidates(id uint64) (a, b uint64) {
	a, _ = bits.Mul64(id, t.groups)
	b, _ = bits.Mul64(id*0x9e3779b97f4a7c15, t.groups)
	return a * groupSize, b * groupSize
}

// find returns the slot of id, or &t.absent.
func (t *table) find(id uint64) *slot {
	if i := t.index(id); i >= 0 {
		return &t.slots[i]
	}
	return &t.absent
}

// index returns the index of the slot of id, or -1.
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
		if s := &group[i]; s.id.Load() == id && s.word.Load() != tombstone {
			return i
		}
	}
	return -1
}

// take puts id into a free or expired slot, leaves the tombstone there and
// returns its index, or -1. The caller holds the stripe of id and stores the
// word.
//
// A key goes to its first group, where it is found with one cache line less,
// until that is nearly full; then to the one with more room. So both are full
// only when hardly any slot is left anywhere.
func (t *table) take(id uint64, expiredBefore int64) int {
	a, b := t.candidates(id)
	if free := t.free(a, expiredBefore); free < 3 && free < t.free(b, expiredBefore) {
		a, b = b, a
	}
	if i := t.takeFrom(a, id, expiredBefore); i >= 0 {
		return i
	}
	return t.takeFrom(b, id, expiredBefore)
}

// free counts the slots that can be taken in the group that begins at first.
func (t *table) free(first uint64, expiredBefore int64) (n int) {
	group := t.slots[first:][:groupSize]
	for i := range group {
		if w := group[i].word.Load(); w != tombstone && w < expiredBefore {
			n++
		}
	}
	return n
}

// takeFrom prefers the slot that expired first, or was never used: its key is
// the least likely to come back.
func (t *table) takeFrom(first, id uint64, expiredBefore int64) int {
	group := t.slots[first:][:groupSize]
	for {
		oldest, at := expiredBefore, -1
		for i := range group {
			if w := group[i].word.Load(); w != tombstone && w < oldest {
				oldest, at = w, i
			}
		}
		if at < 0 {
			return -1
		}
		if s := &group[at]; s.word.CompareAndSwap(oldest, tombstone) {
			s.id.Store(id)
			return int(first) + at
		}
	}
}

// nextExpiry is the lowest word in the groups of id: the next slot to expire
// there.
func (t *table) nextExpiry(id uint64) int64 {
	lowest := int64(math.MaxInt64)
	a, b := t.candidates(id)
	for _, first := range [2]uint64{a, b} {
		group := t.slots[first:][:groupSize]
		for i := range group {
			if w := group[i].word.Load(); w != tombstone {
				lowest = min(lowest, w)
			}
		}
	}
	return lowest
}
