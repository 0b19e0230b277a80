// Package keystore keeps the state of each key of a limiter, in bounded memory
// and without background work.
package keystore

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/interleave"
)

// Store keeps a state S for each key and for the empty key. An unused key has the zero state. The
// table is empty until the first key, then has room for 8, and grows with the keys.
//
// There are two implementations. If S is int64 and V is struct{}, the state is one word, swapped
// without a lock: an instant in ticks, before which the state is live. Otherwise S is *V; the
// values lie beside a table of words, which are their expiries and their locks.
//
// A Store must not be copied.
type Store[S, V any] struct {
	Clock    Clock
	lockFree bool // S is int64
	copying  func(heir, from *V)
	initial  int64
	fresh    V
	keys     table[V]
	unkeyed  unkeyed[V]
}

// Config bounds a Store.
type Config struct {
	MaxKeys int              // live keys that have room
	Evict   bool             // without room, a new key replaces the one of 16 with the least debt
	Now     func() time.Time // nil: the system's clock
}

// unkeyed is the state of the empty key. It keeps two cache lines to itself, so that a processor
// that writes it does not slow down its neighbors (two, because the prefetcher takes pairs; what
// the table writes lies between). Its slot has the id 0, which no key has, and never expires.
type unkeyed[V any] struct {
	_ [24]byte
	slot
	accounts
	value V
	_     [56]byte
}

// Init makes s ready and starts its clock. inherit copies a value into one that
// may hold memory worth keeping; nil assigns.
func (s *Store[S, V]) Init(c Config, inherit func(heir, from *V)) {
	s.Clock = StartClock(c.Now)
	s.keys.init(c)
	s.copying = inherit
	var state S
	_, s.lockFree = any(state).(int64)
}

// SetInitial sets the word of an unused key, by default 0. Call it before the first Update.
func (s *Store[S, V]) SetInitial(word int64) {
	s.initial = word
	s.unkeyed.word.Store(word)
}

// State is the state of one key during an Update.
type State[S any] struct {
	State    S
	ID       uint64 // the seeded hash of the key; 0 for the empty key
	Mark     int64  // identifies a charge that this update makes; see Refund
	accounts *accounts
}

// Invalidate ends the refunds of all charges in the state and, when many keys are invalidated, of
// the oldest charges to some others. An update that forgives something calls it before it returns;
// one that forgives everything, again after Update.
func (s State[S]) Invalidate() { s.accounts.open(s.ID).invalidate(s.ID) }

// Valid reports whether the charge with this mark can still be refunded.
func (s State[S]) Valid(mark int64) bool { return s.accounts.of(s.ID).valid(s.ID, mark) }

const (
	// Fresh makes Update read the clock after the state.
	Fresh = math.MinInt64
	// Now lets it read the clock before the state, which shortens the time between load and swap.
	Now = Fresh + 1
)

// Result is the outcome of an Update.
type Result uint8

// The results.
const (
	Unchanged Result = iota // f left the state as it was
	Updated
	Evicted // updated, in the slot of another key that was live
	Full    // the key is absent, there is no room for it, and it must not evict another
	lost    // another goroutine changed the state: load it again
)

// Update applies f to the state of key atomically, and returns the instant of the decision. f
// returns the next state and its expiry, or false if nothing has changed. A word is its own expiry;
// a value is changed in place.
//
// The instant of the decision:
//   - at is a reading of the clock: that reading;
//   - at is [Now]: a new reading;
//   - at is [Fresh]: a reading taken after the state is loaded;
//   - the key is absent: always a new reading, because its word may have expired since the earlier
//     one.
//
// If f changes nothing, as for a denial or a peek, the reading is not older than the state: an
// older one would show others' later charges as debt.
//
// f may run several times. A value is locked while f runs, so f must not block, call out or panic.
func (s *Store[S, V]) Update(key string, at int64, f func(s State[S], now int64) (next S, expiry int64, ok bool)) (now int64, r Result) {
	if !s.lockFree {
		return s.updateLocked(key, at, f)
	}
	id, w := s.slotOf(key)
	all := &s.unkeyed.accounts
	a := all.of(id)
	current := int64(tombstone) // a word that was loaded before the reading
	switch now = at; {
	case at != Now:
	case s.Clock.given == nil:
		current, now = w.word.Load(), s.Clock.system()
	default:
		current, now = w.word.Load(), s.Clock.Now()
	}
	for {
		// The mark before the word, the word before the id: a slot that changed
		// hands in between shows the new id.
		mark, word := a.done.Load(), w.word.Load()
		if word == tombstone || w.id.Load() != id {
			if w, now, r = s.insert(State[S]{any(s.initial).(S), id, mark, all}, now, f); r != lost {
				return now, r
			}
			continue
		}
		if at == Fresh {
			current, now = word, max(now, s.Clock.Now())
		}
		next, _, ok := f(State[S]{any(word).(S), id, mark, all}, now)
		switch {
		case !ok && word == current:
			return now, Unchanged
		case !ok:
			at = Fresh
			continue
		}
		interleave.Point()
		switch to := any(next).(int64); {
		case to < word && id != 0:
			if s.keys.lower(w, id, word, to) {
				return now, Updated
			}
		case !w.word.CompareAndSwap(word, to):
		case w.id.Load() == id:
			return now, Updated
		case s.keys.swapped(w, id, word, to):
			return now, Updated
		}
	}
}

// slotOf returns the hash of a key and the slot that may hold it.
func (s *Store[S, V]) slotOf(key string) (id uint64, w *slot) {
	if key == "" {
		return 0, &s.unkeyed.slot
	}
	id = s.keys.hash(key)
	return id, s.keys.find(id)
}

// insert looks for the slot of a key again. If there is none, it applies f and, if that changes the
// state, takes a slot. It reads the clock once the key is known to be absent.
func (s *Store[S, V]) insert(absent State[S], at int64, f func(State[S], int64) (S, int64, bool)) (w *slot, now int64, r Result) {
	w, _, g := s.keys.look(absent.ID)
	if w != &noSlot {
		return w, at, lost
	}
	now = s.Clock.Now()
	next, _, ok := f(absent, now)
	if !ok {
		return w, now, Unchanged
	}
	interleave.Point()
	return w, now, s.place(g, absent.ID, any(next).(int64), now)
}

// Refund takes back at most limit ticks of the charge with this mark. f refunds them and returns their
// number, which Refund returns too; shift is how many ticks of other charges were refunded since. f does
// not run if the charge was invalidated.
//
// The clock is read after the state: a refund that was computed at an older reading would give back units
// that have drained meanwhile.
func (s *Store[S, V]) Refund(key string, mark, limit int64, f func(s State[S], now, shift int64) (next S, expiry, ticks int64, ok bool)) int64 {
	var a *account
	var refunded int64
	_, r := s.Update(key, Fresh, func(c State[S], now int64) (next S, expiry int64, ok bool) {
		if !c.Valid(mark) {
			return next, 0, false
		}
		if a == nil { // not in another attempt
			a = c.accounts.open(c.ID)
			a.begin(limit)
		}
		next, expiry, refunded, ok = f(c, now, a.shift(mark, limit))
		return next, expiry, ok
	})
	if a == nil {
		return 0
	}
	if r == Unchanged || r == Full {
		refunded = 0
	}
	a.end(limit, min(refunded, limit))
	return refunded
}

// Has reports whether key has a state of its own, which may have expired.
func (s *Store[S, V]) Has(key string) bool {
	if key == "" {
		return true
	}
	if s.Empty() {
		return false
	}
	w, _, _ := s.keys.look(s.keys.hash(key))
	return w != &noSlot
}

// Empty reports whether no key has arrived yet, beside the empty one.
func (s *Store[S, V]) Empty() bool { return s.keys.segments.Load() == nil }

// Len counts the keys that have not expired at the instant that now returns for
// their hash. It walks the table; while that grows, some keys may be passed over
// or counted twice.
func (s *Store[S, V]) Len(now func(id uint64) int64) (n int) {
	s.keys.all(func(id uint64, word int64) {
		if word >= now(id) {
			n++
		}
	})
	return n
}

// Cap returns the number of live keys that have room.
func (s *Store[S, V]) Cap() int { return s.keys.maxKeys }

// Overflowed counts the updates of absent keys that found no room. Each one that was not denied
// evicted a key.
func (s *Store[S, V]) Overflowed() uint64 { return s.keys.full.Load() }

// RoomAfter returns after how many ticks from now there may be room for a new key.
func (s *Store[S, V]) RoomAfter(key string, now int64) int64 {
	id := s.keys.hash(key)
	if w := s.keys.segment(id).nextExpiry(id); w != locked {
		return max(w-now, 0) + 1
	}
	return 1
}

// HasRoom reports whether an Update of key at now finds room.
func (s *Store[S, V]) HasRoom(key string, now int64) bool {
	return s.keys.evicts || key == "" || s.keys.hasRoom(key, now)
}
