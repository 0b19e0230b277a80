// Package keystore keeps the state of each key of a limiter, in bounded memory
// and without background work. It evicts only expired state: never debt.
package keystore

import (
	"math"
	"sync"
	"sync/atomic"
)

// Store keeps, for each key and for the empty key, one word and a value beside
// it. The zero word and the zero value are the state of a key that was never
// seen. The table is made when the first key arrives, so a store without keys
// stays small.
//
// Where S is struct{}, the word is the whole state: an instant in ticks from
// which the state is equivalent to an absent key. It is swapped without a lock.
// Otherwise the word is the expiry of the value, and a lock.
//
// A Store must not be copied.
type Store[S any] struct {
	Clock    Clock
	config   Config
	lockFree bool // S is struct{}
	copying  func(heir, from *S)
	initial  int64
	making   sync.Mutex
	keys     atomic.Pointer[valueTable[S]]
	unkeyed  unkeyed[S]
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
type unkeyed[S any] struct {
	_ [48]byte
	slot
	stripe
	value S
	_     [64]byte
}

// Init makes s ready and starts its clock. inherit copies a value into one that
// may hold memory worth keeping; nil assigns.
func (s *Store[S]) Init(c Config, inherit func(heir, from *S)) {
	s.Clock = StartClock()
	s.config, s.copying = c, inherit
	_, s.lockFree = any(s.unkeyed.value).(struct{})
}

// SetInitial sets the word of a key that was never seen, in place of 0. It must
// be called before the first Update, on a store without values.
func (s *Store[S]) SetInitial(word int64) {
	s.initial = word
	s.unkeyed.word.Store(word)
}

// State is the state of one key during an Update.
type State[S any] struct {
	Word    int64  // the state, or the expiry of Value
	Value   *S     // nil where S is struct{}
	ID      uint64 // the seeded hash of the key; 0 for the empty key
	Mark    int64  // identifies a charge that this update makes; see Refundable
	account *account
}

// Refundable reports whether the charge that was made with this mark can still
// be refunded: no Invalidate came in between.
func (s State[S]) Refundable(mark int64) bool { return s.account.valid(mark) }

// Invalidate ends the refunds of all earlier charges to the key, and to a few
// other keys. An update that removes debt from a word must call it before the
// word is lowered and again after: neither the charges that it removes nor
// those made meanwhile can be refunded then.
func (s State[S]) Invalidate() { s.account.invalidate() }

// Fresh makes Update read the clock after the state.
const Fresh = math.MinInt64

// Result is the outcome of an Update.
type Result uint8

// The results.
const (
	Unchanged Result = iota // f left the state as it was
	Updated
	Full // the key is absent, there is no room for it, and it must not share
)

// Update applies f to the state of key atomically, and returns the instant of
// the decision. f returns the next word: the state, or the expiry of the value
// that it changed in place. With false, nothing has changed.
//
// The instant is at, the caller's reading of the clock; a new one for an absent
// key; and with Fresh one that was taken after the state was read. On a store
// without values f may run several times; on one with values it runs under a
// lock, and must not block, call out or panic.
func (s *Store[S]) Update(key string, at int64, f func(s State[S], now int64) (next int64, ok bool)) (now int64, r Result) {
	if s.lockFree {
		return s.updateWord(key, at, f)
	}
	return s.updateLocked(key, at, f)
}

// Refund lowers the word of key by the ticks that f returns, at most by most
// and not below now, and accounts for them. shift is how many ticks of other
// refunds came since the charge with this mark. The store must be one without
// values.
//
// The clock is read after the word: a refund that was computed at an older
// reading would give back what has drained meanwhile.
func (s *Store[S]) Refund(key string, mark, most int64, f func(shift, now int64) int64) {
	a := s.account(key)
	a.begin(most)
	var refunded int64
	_, r := s.Update(key, Fresh, func(c State[S], now int64) (int64, bool) {
		refunded = 0
		if a.valid(mark) {
			refunded = max(min(f(a.shift(mark, most), now), most, c.Word-now), 0)
		}
		return c.Word - refunded, refunded > 0
	})
	if r != Updated {
		refunded = 0 // an absent key without room: there is nothing to lower
	}
	a.end(most, refunded)
}

func (s *Store[S]) account(key string) *account {
	if key == "" {
		return &s.unkeyed.account
	}
	t := s.table()
	return &t.stripe(t.hash(key)).account
}

func (s *Store[S]) inherit(heir, from *S) {
	if s.copying == nil {
		*heir = *from
		return
	}
	s.copying(heir, from)
}

func (s *Store[S]) table() *valueTable[S] {
	if t := s.keys.Load(); t != nil {
		return t
	}
	return s.makeTable()
}

func (s *Store[S]) makeTable() *valueTable[S] {
	s.making.Lock()
	defer s.making.Unlock()
	t := s.keys.Load()
	if t == nil {
		t = new(valueTable[S])
		t.init(s.config.MaxKeys, s.config.Share, s.initial)
		t.values = make([]S, len(t.slots))
		t.overflow = make([]S, len(t.table.overflow))
		s.keys.Store(t)
	}
	return t
}

// Empty reports whether no key has arrived yet, beside the empty one.
func (s *Store[S]) Empty() bool { return s.keys.Load() == nil }

// Len counts the keys that have not expired at now. It walks the table.
func (s *Store[S]) Len(now int64) int {
	if t := s.keys.Load(); t != nil {
		return t.live(now)
	}
	return 0
}

// Overflowed counts the updates of absent keys that found no room.
func (s *Store[S]) Overflowed() uint64 {
	if t := s.keys.Load(); t != nil {
		return t.overflowed.Load()
	}
	return 0
}

// RoomAfter is how many ticks after now there may be room for a new key.
func (s *Store[S]) RoomAfter(key string, now int64) int64 {
	t := s.table()
	if w := t.nextExpiry(t.hash(key)); w != locked {
		return max(w-now, 0) + 1
	}
	return 1
}

// HasRoom reports whether an Update of key at now finds room.
func (s *Store[S]) HasRoom(key string, now int64) bool {
	if s.config.Share || key == "" {
		return true
	}
	t := s.table()
	id := t.hash(key)
	return t.index(id) >= 0 || t.nextExpiry(id) < now
}
