package algo

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/interleave"
)

// cells is where a limiter keeps a state of more than one word: an S for the
// limiter itself, under the empty key, one beside each slot of a table, and
// one for each overflow word. The zero S is the state of a key that was
// never seen.
//
// The word of a slot is a lock and an expiry: the instant from which the S
// says no more than the zero S does. A decision swaps the word for locked,
// works on the S alone, and stores the new expiry, which unlocks:
//
//	h, now := c.lock(key, now)
//	if h.value == nil { ... } // the table is full and the policy not to share
//	... decide on *h.value at now ...
//	h.unlock(expiry) // or h.leave(), when *h.value is as it was
//
// Nothing in between may block, call out or panic.
//
// Eviction is that of the table: a slot whose expiry lies before now is
// retired by a swap and its S overwritten. locked is above every horizon, so a
// slot at work is never retired; and because an S is read under the lock only,
// after the id was found to be the right one, a slot that changes hands cannot
// be mistaken for the old owner's, whatever its word: words need not grow.
//
// A key without a slot is decided on at a reading of the clock that is taken
// once its stripe is held and it was found to be absent. An older one would not
// count the time for which a state that was evicted since still weighed.
type cells[S any] struct {
	clock   clock
	maxKeys int
	onFull  FullPolicy
	inherit func(heir, from *S) // nil: *heir = *from
	making  sync.Mutex
	keys    atomic.Pointer[cellTable[S]]
	own     ownCell[S]
}

// ownCell keeps its cache lines to itself, as ownWord does. Its slot has the
// id 0 that no key has, and is never retired.
type ownCell[S any] struct {
	_ [48]byte
	slot
	stripe
	value S
	_     [64]byte
}

// cellTable puts an S beside each slot and each overflow word of a table. The
// latter belongs to whoever holds the stripe's mutex.
type cellTable[S any] struct {
	*table
	cells  *cells[S]
	values []S
	shared []S // as the table has overflow words
}

// locked is the word of a slot whose S is being worked on. It is above every
// horizon, so such a slot counts as live.
const locked = math.MaxInt64

// held is an S under lock.
type held[S any] struct {
	value  *S      // nil: a new key, no slot, and the policy is not to share
	at     *slot   // nil: value is shared by a stripe
	was    int64   // the word of at before; retired: a newcomer's slot
	stripe *stripe // held as well, for a newcomer and for a shared value
}

// init makes c ready, as options say.
func (c *cells[S]) init(s Spec) {
	c.clock = startClock()
	c.maxKeys, c.onFull = s.maxKeys(), s.OnFull
}

// lock finds the S of key and locks it. The instant it returns is the one to
// decide at: now, or a later one for a key without a slot.
func (c *cells[S]) lock(key string, now int64) (held[S], int64) {
	if key == "" {
		was, _ := hold(&c.own.slot, 0)
		return held[S]{&c.own.value, &c.own.slot, was, nil}, now
	}
	return c.table().lock(key, now)
}

// stripe is where resets of key are remembered.
func (c *cells[S]) stripe(key string) *stripe {
	if key == "" {
		return &c.own.stripe
	}
	t := c.table()
	return t.stripe(t.hash(key))
}

func (c *cells[S]) table() *cellTable[S] {
	if t := c.keys.Load(); t != nil {
		return t
	}
	return c.makeTable()
}

func (c *cells[S]) makeTable() *cellTable[S] {
	c.making.Lock()
	defer c.making.Unlock()
	t := c.keys.Load()
	if t == nil {
		t = &cellTable[S]{table: newTable(c.maxKeys, c.onFull), cells: c}
		t.values = make([]S, len(t.slots))
		t.shared = make([]S, len(t.table.shared))
		c.keys.Store(t)
	}
	return t
}

func (t *cellTable[S]) lock(key string, now int64) (held[S], int64) {
	id := t.hash(key)
	for {
		if i := t.index(id); i >= 0 {
			if was, ok := hold(&t.slots[i], id); ok {
				return held[S]{&t.values[i], &t.slots[i], was, nil}, now
			}
		} else if h, at, ok := t.enter(id, now); ok {
			return h, at
		}
	}
}

// hold locks s if it belongs to id, and returns its word.
func hold(s *slot, id uint64) (was int64, ok bool) {
	for tries := 0; s.id.Load() == id; tries++ {
		was = s.word.Load()
		if was == retired {
			return 0, false
		}
		interleave.Point()
		if was == locked {
			spin(tries)
			continue
		}
		if !s.word.CompareAndSwap(was, locked) {
			continue
		}
		if s.id.Load() == id {
			interleave.Point()
			return was, true
		}
		s.word.Store(was) // it changed hands before it was locked
	}
	return 0, false
}

// spin waits for a lock that is held for a few nanoseconds, unless its holder
// has lost the processor: then it needs ours.
func spin(tries int) {
	if tries >= 4 {
		runtime.Gosched()
	}
}

// enter locks the S of a key without a slot: that of a slot which it takes, or
// the one that the stripe shares, whose debt a newcomer takes along. It is not
// ok when the key has got a slot meanwhile.
func (t *cellTable[S]) enter(id uint64, now int64) (h held[S], at int64, ok bool) {
	st := t.stripe(id)
	st.mu.Lock()
	if t.index(id) >= 0 {
		st.mu.Unlock()
		return h, now, false
	}
	interleave.Point()
	now = max(now, t.cells.clock.now())
	shared := &t.shared[id&uint64(len(t.shared)-1)]
	if i := t.take(id, now); i >= 0 {
		h = held[S]{&t.values[i], &t.slots[i], retired, st}
		t.cells.bequeath(h.value, shared)
		return h, now, true
	}
	t.spilled.Add(1)
	if t.onFull != Overflow {
		st.mu.Unlock()
		return h, now, true
	}
	return held[S]{shared, nil, 0, st}, now, true
}

// bequeath makes heir, whatever it was, say what from says.
func (c *cells[S]) bequeath(heir, from *S) {
	if c.inherit != nil {
		c.inherit(heir, from)
		return
	}
	*heir = *from
}

// unlock ends the work on a changed S, which from expiry on says nothing. An
// expiry that was too large for the clock and turned negative never comes.
func (h held[S]) unlock(expiry int64) {
	if h.at != nil {
		h.at.word.Store(int64(min(uint64(expiry), locked-1)))
	}
	if h.stripe != nil {
		h.stripe.mu.Unlock()
	}
}

// leave ends the work on an S that is as it was. A newcomer gives his slot
// back: nothing stands there.
func (h held[S]) leave() {
	if h.at != nil {
		word := h.was
		if word == retired {
			h.at.id.Store(0)
			word = 0
		}
		h.at.word.Store(word)
	}
	if h.stripe != nil {
		h.stripe.mu.Unlock()
	}
}

// live counts the keys whose S has not expired. It walks the table.
func (c *cells[S]) live(now int64) int {
	if t := c.keys.Load(); t != nil {
		return t.live(now)
	}
	return 0
}

// spilled counts the decisions on new keys that found the table full.
func (c *cells[S]) spilled() uint64 {
	if t := c.keys.Load(); t != nil {
		return t.spilled.Load()
	}
	return 0
}

// soonest is how long a new key must wait for a slot at least.
func (c *cells[S]) soonest(key string, now int64) int64 {
	t := c.table()
	if w := t.soonest(t.hash(key)); w != locked {
		return max(w-now, 0) + 1
	}
	return 1
}
