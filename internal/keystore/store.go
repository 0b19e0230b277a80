// Package keystore keeps the state of each key of a limiter, in bounded memory
// and without background work. It evicts only expired state: never debt.
package keystore

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/interleave"
)

// Store keeps a state S for each key and for the empty key. The zero state is
// that of a key that was never seen. The table is made when the first key
// arrives, so a store without keys stays small.
//
// There are two implementations. Where S is int64 and V is struct{}, the state
// is one word, which is swapped without a lock: an instant in ticks, before
// which the state is live. Otherwise S is *V; the values lie beside a table of
// words, which are their expiries and their locks.
//
// A Store must not be copied.
type Store[S, V any] struct {
	Clock    Clock
	config   Config
	lockFree bool // S is int64
	copying  func(heir, from *V)
	initial  int64
	making   sync.Mutex
	keys     atomic.Pointer[valueTable[V]]
	unkeyed  unkeyed[V]
}

// Config bounds a Store.
type Config struct {
	MaxKeys int  // live keys that have room for certain
	Share   bool // new keys share a fixed set of states when there is no room
}

// unkeyed is the state of the empty key. It keeps two cache lines to itself, so
// that a processor that writes it does not slow down its neighbors (two,
// because the prefetcher takes pairs). Its slot has the id 0, which no key has,
// and never expires.
type unkeyed[V any] struct {
	_ [48]byte
	slot
	stripe
	value V
	_     [64]byte
}

// Init makes s ready and starts its clock. inherit copies a value into one that
// may hold memory worth keeping; nil assigns.
func (s *Store[S, V]) Init(c Config, inherit func(heir, from *V)) {
	s.Clock = StartClock()
	s.config, s.copying = c, inherit
	var state S
	_, s.lockFree = any(state).(int64)
}

// SetInitial sets the word of a key that was never seen, in place of 0. It must
// be called before the first Update.
func (s *Store[S, V]) SetInitial(word int64) {
	s.initial = word
	s.unkeyed.word.Store(word)
}

// State is the state of one key during an Update.
type State[S any] struct {
	State   S
	ID      uint64 // the seeded hash of the key; 0 for the empty key
	Mark    int64  // identifies a charge that this update makes; see Refund
	account *account
}

// Invalidate ends the refunds of all charges that the state holds, and of
// earlier charges to a few other keys. An update that forgives something calls
// it before it returns, and one that forgives everything once more after Update.
func (s State[S]) Invalidate() { s.account.invalidate() }

// Valid reports whether the charge with this mark can still be refunded.
func (s State[S]) Valid(mark int64) bool { return s.account.valid(mark) }

// Fresh makes Update read the clock after the state.
const Fresh = math.MinInt64

// Result is the outcome of an Update.
type Result uint8

// The results.
const (
	Unchanged Result = iota // f left the state as it was
	Updated
	Full // the key is absent, there is no room for it, and it must not share
	lost // another goroutine changed the state: load it again
)

// Update applies f to the state of key atomically, and returns the instant of
// the decision. f returns the next state and its expiry, or false if nothing
// has changed. A word is its own expiry; a value is changed in place.
//
// The instant is at, the caller's reading of the clock; a new one for an absent
// key; and with Fresh one that was taken after the state was read. A word may
// make f run several times; a value is locked while f runs, so f must not
// block, call out or panic.
func (s *Store[S, V]) Update(key string, at int64, f func(s State[S], now int64) (next S, expiry int64, ok bool)) (now int64, r Result) {
	if !s.lockFree {
		return s.updateLocked(key, at, f)
	}
	w, now := ref{at: &s.unkeyed.slot, stripe: &s.unkeyed.stripe}, at
	if key != "" {
		w = s.table().ref(key)
	}
	for {
		// The mark before the word, the word before the id: a slot that changed
		// hands in between shows the new id.
		mark, absent := w.stripe.done.Load(), false
		word := w.at.word.Load()
		if word == tombstone || w.at.id.Load() != w.id {
			if w, word = w.reload(); w.absent() {
				absent, now = true, s.Clock.Now()
			}
		}
		if at == Fresh {
			now = s.Clock.Now()
		}
		next, _, ok := f(State[S]{any(word).(S), w.id, mark, &w.stripe.account}, now)
		if !ok {
			return now, Unchanged
		}
		interleave.Point()
		r := lost
		switch {
		case absent:
			r = w.insert(word, any(next).(int64), now)
		case !w.at.word.CompareAndSwap(word, any(next).(int64)):
		case w.at.id.Load() == w.id:
			r = Updated
		default:
			// The slot expired, was taken over, and the word of the new key
			// happened to equal ours. Restore it; if it has changed meanwhile,
			// the charge stays with that key, which errs on the safe side.
			w.at.word.CompareAndSwap(any(next).(int64), word)
		}
		if r != lost {
			return now, r
		}
	}
}

// Refund takes back at most most ticks of the charge with this mark. f refunds
// them and returns how many they were; shift is how many ticks of other charges
// were refunded since. f does not run if the charge was invalidated.
//
// The clock is read after the state: a refund that was computed at an older
// reading would give back what has drained meanwhile.
func (s *Store[S, V]) Refund(key string, mark, most int64, f func(s State[S], now, shift int64) (next S, expiry, ticks int64, ok bool)) {
	a := s.account(key)
	a.begin(most)
	var refunded int64
	_, r := s.Update(key, Fresh, func(c State[S], now int64) (next S, expiry int64, ok bool) {
		if !a.valid(mark) {
			return next, 0, false
		}
		next, expiry, refunded, ok = f(c, now, a.shift(mark, most))
		return next, expiry, ok
	})
	if r != Updated {
		refunded = 0
	}
	a.end(most, min(refunded, most))
}

func (s *Store[S, V]) account(key string) *account {
	if key == "" {
		return &s.unkeyed.account
	}
	t := s.table()
	return &t.stripe(t.hash(key)).account
}

func (s *Store[S, V]) inherit(heir, from *V) {
	if s.copying == nil {
		*heir = *from
		return
	}
	s.copying(heir, from)
}

func (s *Store[S, V]) table() *valueTable[V] {
	if t := s.keys.Load(); t != nil {
		return t
	}
	return s.makeTable()
}

func (s *Store[S, V]) makeTable() *valueTable[V] {
	s.making.Lock()
	defer s.making.Unlock()
	t := s.keys.Load()
	if t == nil {
		t = new(valueTable[V])
		t.init(s.config.MaxKeys, s.config.Share, s.initial)
		t.values = make([]V, len(t.slots))
		t.overflow = make([]V, len(t.table.overflow))
		s.keys.Store(t)
	}
	return t
}

// Empty reports whether no key has arrived yet, beside the empty one.
func (s *Store[S, V]) Empty() bool { return s.keys.Load() == nil }

// Len counts the keys that have not expired at the instant that now returns for
// their hash. It walks the table.
func (s *Store[S, V]) Len(now func(id uint64) int64) (n int) {
	t := s.keys.Load()
	if t == nil {
		return 0
	}
	for i := range t.slots {
		if w := t.slots[i].word.Load(); w != 0 && w >= now(t.slots[i].id.Load()) {
			n++
		}
	}
	return n
}

// Overflowed counts the updates of absent keys that found no room.
func (s *Store[S, V]) Overflowed() uint64 {
	if t := s.keys.Load(); t != nil {
		return t.overflowed.Load()
	}
	return 0
}

// RoomAfter is how many ticks after now there may be room for a new key.
func (s *Store[S, V]) RoomAfter(key string, now int64) int64 {
	t := s.table()
	if w := t.nextExpiry(t.hash(key)); w != locked {
		return max(w-now, 0) + 1
	}
	return 1
}

// HasRoom reports whether an Update of key at now finds room.
func (s *Store[S, V]) HasRoom(key string, now int64) bool {
	if s.config.Share || key == "" {
		return true
	}
	t := s.table()
	id := t.hash(key)
	return t.index(id) >= 0 || t.nextExpiry(id) < now
}
