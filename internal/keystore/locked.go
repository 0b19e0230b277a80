package keystore

import (
	"math"
	"runtime"

	"github.com/sluice-go/sluice/internal/interleave"
)

// valueTable keeps a value beside each slot and each overflow word of a table.
// A value beside an overflow word is guarded by the stripe's mutex.
type valueTable[V any] struct {
	table
	values   []V
	overflow []V
}

// locked is the word of a slot whose value is in use. It lies above every
// instant, so such a slot counts as live and is never taken. A value is read
// under the lock only, after the id was found to be the right one, so a slot
// that changes hands cannot be mistaken for the old key's, whatever its word.
const locked = math.MaxInt64

// guard is a locked value.
type guard[V any] struct {
	value   *V      // nil: an absent key, no slot, and it must not share
	at      *slot   // nil: the value is beside an overflow word
	was     int64   // the word before; tombstone: the slot of a new key
	id      uint64  // of the key
	account *stripe // of the key
	held    *stripe // its mutex is held, for a new key and beside an overflow word
}

// updateLocked is Update where S is *V. Nothing between lock and unlock blocks,
// calls out or panics.
func (s *Store[S, V]) updateLocked(key string, at int64, f func(State[S], int64) (S, int64, bool)) (int64, Result) {
	g, now := s.lock(key, at)
	if g.value == nil {
		return now, Full
	}
	if at == Fresh {
		now = s.Clock.Now()
	}
	a := &g.account.account
	_, expiry, ok := f(State[S]{any(g.value).(S), g.id, a.done.Load(), a}, now)
	if !ok {
		g.restore()
		return now, Unchanged
	}
	g.unlock(expiry)
	return now, Updated
}

// lock finds the value of key and locks it. The instant that it returns is the
// one to decide at: now, or a later one for an absent key.
func (s *Store[S, V]) lock(key string, now int64) (guard[V], int64) {
	if key == "" {
		was, _ := hold(&s.unkeyed.slot, 0)
		return guard[V]{value: &s.unkeyed.value, at: &s.unkeyed.slot, was: was, account: &s.unkeyed.stripe}, now
	}
	t := s.table()
	id := t.hash(key)
	for {
		if i := t.index(id); i >= 0 {
			if was, ok := hold(&t.slots[i], id); ok {
				return guard[V]{&t.values[i], &t.slots[i], was, id, t.stripe(id), nil}, now
			}
		} else if g, at, ok := s.lockAbsent(t, id, now); ok {
			return g, at
		}
	}
}

// hold locks the slot if it belongs to id, and returns its word.
func hold(s *slot, id uint64) (was int64, ok bool) {
	for tries := 0; s.id.Load() == id; tries++ {
		was = s.word.Load()
		if was == tombstone {
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
// has lost the processor: then it needs this one.
func spin(tries int) {
	if tries >= 4 {
		runtime.Gosched()
	}
}

// lockAbsent locks the value of a key without a slot: the value of a slot that
// it takes, which inherits the overflow value, or the overflow value itself.
// It is not ok when the key has got a slot meanwhile.
//
// The clock is read once the stripe is held and the key was found to be absent.
// At an earlier reading a value that was evicted since still counted.
func (s *Store[S, V]) lockAbsent(t *valueTable[V], id uint64, now int64) (g guard[V], at int64, ok bool) {
	st := t.stripe(id)
	st.mu.Lock()
	if t.index(id) >= 0 {
		st.mu.Unlock()
		return g, now, false
	}
	interleave.Point()
	now = max(now, s.Clock.Now())
	overflow := &t.overflow[t.overflowIndex(id)]
	if i := t.take(id, now); i >= 0 {
		s.inherit(&t.values[i], overflow)
		return guard[V]{&t.values[i], &t.slots[i], tombstone, id, st, st}, now, true
	}
	t.overflowed.Add(1)
	if !t.share {
		st.mu.Unlock()
		return g, now, true
	}
	return guard[V]{overflow, nil, 0, id, st, st}, now, true
}

// unlock ends the work on a changed value, which expires at expiry. An expiry
// that was too large for the clock and turned negative never comes.
func (g guard[V]) unlock(expiry int64) {
	if g.at != nil {
		g.at.word.Store(int64(min(uint64(expiry), locked-1)))
	}
	if g.held != nil {
		g.held.mu.Unlock()
	}
}

// restore ends the work on an unchanged value. A new key gives its slot back.
func (g guard[V]) restore() {
	if g.at != nil {
		word := g.was
		if word == tombstone {
			g.at.id.Store(0)
			word = 0
		}
		g.at.word.Store(word)
	}
	if g.held != nil {
		g.held.mu.Unlock()
	}
}
