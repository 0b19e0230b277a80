package keystore

import (
	"math"
	"runtime"

	"github.com/sluice-go/sluice/internal/interleave"
)

// locked is the word of a slot whose value is in use. It lies above every instant, so the slot
// counts as live and is never taken. A value is read only under the lock, after a check of the id,
// so a slot that changes hands is never mistaken for the old key's.
const locked = math.MaxInt64

// updateLocked is Update if S is *V. Between lock and unlock nothing blocks, calls out or panics.
func (s *Store[S, V]) updateLocked(key string, at int64, f func(State[S], int64) (S, int64, bool)) (now int64, r Result) {
	if key == "" {
		was, _ := hold(&s.unkeyed.slot, 0)
		return s.updateHeld(&s.unkeyed.slot, was, &s.unkeyed.value, at, f)
	}
	t := &s.keys
	id := t.hash(key)
	for r = lost; r == lost; {
		g := t.segment(id)
		if i := g.index(id); i < 0 {
			now, r = s.updateAbsent(g, id, at, f)
		} else if was, ok := hold(&g.slots[i], id); ok {
			return s.updateHeld(&g.slots[i], was, &g.values[i], at, f)
		}
	}
	return now, r
}

// updateHeld applies f to the value of a locked slot and unlocks it. It reads the clock under the
// lock, unless f changes the value at the caller's reading.
func (s *Store[S, V]) updateHeld(w *slot, was int64, v *V, at int64, f func(State[S], int64) (S, int64, bool)) (int64, Result) {
	if at > Now {
		if _, expiry, ok := f(s.state(v, w.id.Load()), at); ok {
			w.word.Store(live(expiry))
			return at, Updated
		}
	}
	at = max(at, s.Clock.Now())
	_, expiry, ok := f(s.state(v, w.id.Load()), at)
	if !ok {
		w.word.Store(was)
		return at, Unchanged
	}
	w.word.Store(live(expiry))
	return at, Updated
}

// updateAbsent applies f to a fresh value, and gives the key a slot if that has changed.
//
// It reads the clock with the mutex held and the key known to be absent: at an earlier reading a
// value that was evicted since still counted.
func (s *Store[S, V]) updateAbsent(g *segment[V], id uint64, now int64, f func(State[S], int64) (S, int64, bool)) (int64, Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.keys.segment(id) != g || g.index(id) >= 0 {
		return now, lost
	}
	interleave.Point()
	now = max(now, s.Clock.Now())
	v := &g.values[len(g.values)-1]
	s.inherit(v, &s.fresh)
	_, expiry, ok := f(s.state(v, id), now)
	if !ok {
		return now, Unchanged
	}
	at, r := s.room(g, id, now)
	if r == Updated || r == Evicted {
		s.inherit(&g.values[at], v)
		g.slots[at].word.Store(live(expiry))
	}
	return now, r
}

func (s *Store[S, V]) state(v *V, id uint64) State[S] {
	all := &s.unkeyed.accounts
	return State[S]{any(v).(S), id, all.of(id).done.Load(), all}
}

// inherit copies a value.
func (s *Store[S, V]) inherit(heir, from *V) {
	if s.copying == nil {
		*heir = *from
		return
	}
	s.copying(heir, from)
}

// live returns the word of a value that expires at expiry. An expiry that overflowed and turned
// negative never comes.
func live(expiry int64) int64 { return int64(min(uint64(expiry), locked-1)) }

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

// spin waits for a lock that is held for a few nanoseconds. It yields the processor in case the
// holder has lost its own.
func spin(tries int) {
	if tries >= 4 {
		runtime.Gosched()
	}
}
