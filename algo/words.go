package algo

import (
	"sync"
	"sync/atomic"
)

// words is where a limiter keeps its state: one word for the limiter itself,
// under the empty key, and a table of words for all other keys. The table is
// made when the first key arrives, so a limiter without keys stays small.
type words struct {
	clock   clock
	maxKeys int
	onFull  FullPolicy
	initial int64 // the word of a key that has none
	making  sync.Mutex
	keys    atomic.Pointer[table]
	own     ownWord
}

// ownWord keeps two cache lines to itself, so that a processor that spends
// from it does not slow down neighbours (two, because the prefetcher takes
// pairs). It is a slot like any other, with the id 0 that no key has.
type ownWord struct {
	_ [48]byte
	slot
	stripe
}

// cell is the word of one key, wherever it stands at the moment. (Four fields
// at most, or it would not stay in registers.)
type cell struct {
	id     uint64
	at     *slot   // &table.nowhere: the key has no slot
	stripe *stripe // of the key; its table is nil for the limiter's own word
	births int64   // stripe.births before the key was found to have no slot
}

func (w *words) cell(key string) cell {
	if key == "" {
		return cell{at: &w.own.slot, stripe: &w.own.stripe}
	}
	return w.keyed(key)
}

func (w *words) keyed(key string) cell {
	t := w.keys.Load()
	if t == nil {
		t = w.makeTable()
	}
	id := t.hash(key)
	return cell{id: id, at: t.find(id), stripe: t.stripe(id)}
}

// begin sets the word that every key begins with, in place of 0. It must be
// called before the first decision.
func (w *words) begin(word int64) {
	w.initial = word
	w.own.word.Store(word)
}

func (w *words) makeTable() *table {
	w.making.Lock()
	defer w.making.Unlock()
	t := w.keys.Load()
	if t == nil {
		t = newTable(w.maxKeys, w.onFull)
		for i := range t.shared {
			t.shared[i].Store(w.initial)
		}
		w.keys.Store(t)
	}
	return t
}

// load returns the word of the cell, and the cell as it is now. For a key
// without a slot the word is the overflow word that it shares: 0, unless the
// table has been full. Such a cell is absent, and the caller must read the
// clock again before it decides: the key may have had a word that died and was
// evicted since, and an older reading would not count the time for which that
// word still weighed.
func (c cell) load() (cell, int64) {
	// The word first, then the id: a slot that changed hands in between shows
	// the new id.
	if w := c.at.word.Load(); w != retired && c.at.id.Load() == c.id {
		return c, w
	}
	return c.reload()
}

// reload looks for the key again where its slot is not its own any more.
func (c cell) reload() (cell, int64) {
	t := c.stripe.table
	for {
		c.births = c.stripe.births.Load()
		if c.at = t.find(c.id); c.at == &t.nowhere {
			return c, t.overflow(c.id).Load()
		}
		if w := c.at.word.Load(); w != retired && c.at.id.Load() == c.id {
			return c, w
		}
	}
}

// absent reports whether the key had no slot when the cell was loaded.
func (c cell) absent() bool {
	return c.stripe.table != nil && c.at == &c.stripe.table.nowhere
}

// swap replaces old, which load returned. Words below horizon are dead.
func (c cell) swap(old, next, horizon int64) swapped {
	if c.absent() {
		return c.stripe.table.insert(c, old, next, horizon)
	}
	if !c.at.word.CompareAndSwap(old, next) {
		return lost
	}
	if c.at.id.Load() == c.id {
		return done
	}
	// The slot died, was taken over, and the newcomer's word came to equal
	// ours. Give the newcomer his word back; if it has moved on, the charge
	// stays with him, which is the safe side.
	c.at.word.CompareAndSwap(next, old)
	return lost
}

// turnsAway reports whether a charge to c would find no room and must not
// share.
func (w *words) turnsAway(c cell, horizon int64) bool {
	return w.onFull != Overflow && c.absent() && c.stripe.table.soonest(c.id) >= horizon
}

// overwrite gives key a word that says no more than absence does, if it has
// one that says more.
func (w *words) overwrite(key string, nothing, horizon int64) {
	if key != "" && w.keys.Load() == nil {
		return
	}
	c := w.cell(key)
	for {
		var word int64
		if c, word = c.load(); word <= nothing {
			return
		}
		if s := c.swap(word, nothing, horizon); s == done || s == full {
			return
		}
	}
}

// live counts the keys whose word is at or above horizon.
func (w *words) live(horizon int64) int {
	if t := w.keys.Load(); t != nil {
		return t.live(horizon)
	}
	return 0
}

// spilled counts the decisions on new keys that found the table full.
func (w *words) spilled() uint64 {
	if t := w.keys.Load(); t != nil {
		return t.spilled.Load()
	}
	return 0
}
