package engine

import (
	"time"

	"github.com/sluice-go/sluice/internal/keystore"
)

// Repaired returns a state that l can decide on, and the instant to decide at.
//
// A state that l cannot have written by now is one of two things. Either now was
// read late: then a new reading replaces it. Or the state is left over from
// another limit: then it is clamped, and where that cuts something off, earlier
// charges cannot be refunded any more.
func (k *Keyed[S, V]) Repaired(l *Limit[S], s keystore.State[S], now int64) (_ S, at int64, changed bool) {
	at = l.At(s.ID, now)
	if l.Plausible(s.State, at) {
		return s.State, at, false
	}
	return k.Clamp(l, s)
}

// Clamp returns what is left of a state that l cannot have written by now, and the present.
func (k *Keyed[S, V]) Clamp(l *Limit[S], s keystore.State[S]) (_ S, at int64, changed bool) {
	at = l.At(s.ID, k.store.Clock.Now())
	if l.Plausible(s.State, at) {
		return s.State, at, false
	}
	state, cut := l.Clamp(s.State, at)
	if cut {
		s.Invalidate()
	}
	return state, at, cut || !k.words || state != s.State
}

// Written is the result of an update that leads to state.
func (l *Limit[S]) Written(state S, now int64, changed bool) (S, int64, bool) {
	if !changed {
		return state, 0, false
	}
	return state, l.Expiry(state, now), true
}

// At is now for the key with that hash.
func (l *Limit[S]) At(hash uint64, now int64) int64 {
	if l.Phase == nil {
		return now
	}
	return now + l.Phase(hash)
}

// Reset is part of [Engine]. It has no effect on a key without debt.
func (k *Keyed[S, V]) Reset(key string) {
	if !k.store.Has(key) {
		return
	}
	var was keystore.State[S]
	_, result := k.store.Update(key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		now = l.At(s.ID, now)
		was = s
		s.Invalidate()
		state := l.Reset(s.State, now)
		return state, max(l.Expiry(state, now), now), true
	})
	if result != keystore.Full {
		// Again: a refund and a charge of the same size in between leave the word as
		// it was, and that charge is forgiven too.
		was.Invalidate()
	}
}

// Limit is part of [Engine].
func (k *Keyed[S, V]) Limit() (int64, time.Duration) {
	l := k.limit.Load()
	return l.Limit(), l.Window
}

// Live is part of [Engine].
func (k *Keyed[S, V]) Live() int {
	l, now := k.limit.Load(), k.store.Clock.Now()
	return k.store.Len(func(hash uint64) int64 {
		if l.Live != nil {
			return l.Live(l.At(hash, now))
		}
		return now + 1
	})
}

// Room is part of [Engine].
func (k *Keyed[S, V]) Room() int { return k.store.Cap() }

// Overflowed is part of [Engine].
func (k *Keyed[S, V]) Overflowed() uint64 { return k.store.Overflowed() }

// Clock is part of [Engine].
func (k *Keyed[S, V]) Clock() *keystore.Clock { return &k.store.Clock }
