package algo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/warning"
)

// decider is a limit with immutable parameters over the state S of one key; see
// package decide.
type decider[S any] interface {
	Limit() int64
	Answer(s S, now, n int64) (S, decide.Answer, decide.Quota)
	Admit(s S, now, n int64) (S, bool)
	Peek(s S, now, n int64) (decide.Answer, decide.Quota)
	Charge(s S, now, n, delay int64) decide.Charge
	Refund(s S, c decide.Charge, now, n, shift int64) (S, int64)
	MaxRefund(c decide.Charge, n int64) int64
	ForceCharge(s S, c decide.Charge, now, n int64) (S, bool)
	Reset(s S, now int64) S
	Plausible(s S, now int64) bool
	Clamp(s S, now int64) (S, bool)
	Expiry(s S, now int64) int64
}

// limit is a decider in use.
type limit[S any] struct {
	decider[S]
	window time.Duration           // in which Limit units are promised; 0: nothing is
	live   func(now int64) int64   // the lowest expiry of a key that has spent something; nil: now + 1
	phase  func(hash uint64) int64 // added to every instant of a key, or nil
}

// keyed applies a limit to the states of its keys: an int64 with V struct{}, or
// a *V. It is everything that the limiters of this package share.
type keyed[S comparable, V any] struct {
	store       *keystore.Store[S, V]
	limit       atomic.Pointer[limit[S]]
	words       bool // S is int64: every admitted state is plausible, and is its own expiry
	denyNew     bool
	fullWarning warning.Minutely

	corrections corrections
}

// newWords makes the store that a Spec asks for, of one word a key.
func newWords(s Spec) *keystore.Store[int64, struct{}] {
	store := new(keystore.Store[int64, struct{}])
	store.Init(s.store(), nil)
	return store
}

// newValues makes the store that a Spec asks for, of values that inherit copies.
func newValues[V any](s Spec, inherit func(heir, from *V)) *keystore.Store[*V, V] {
	store := new(keystore.Store[*V, V])
	store.Init(s.store(), inherit)
	return store
}

func (s *Spec) store() keystore.Config {
	return keystore.Config{MaxKeys: s.maxKeys(), Evict: !s.DenyNew}
}

// use makes k ready. It is not a constructor because k must not move.
func (k *keyed[S, V]) use(store *keystore.Store[S, V], denyNew bool) {
	var state S
	_, k.words = any(state).(int64)
	k.store, k.denyNew = store, denyNew
	k.corrections.settle = k.settle
}

// Allow is the short form of Acquire for callers that need only Allowed. It
// does not admit with a Delay: units that do not fit now are denied. A negative
// n is denied.
func (k *keyed[S, V]) Allow(key string, n int64) (allowed bool) {
	if k.store == nil {
		panic(errLiteral)
	}
	if n < 0 {
		return false
	}
	_, r := k.store.Update(key, keystore.Now, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		if k.words {
			at := l.at(s.ID, now)
			next, ok := l.Admit(s.State, at, n)
			if ok || l.Plausible(s.State, at) {
				allowed = ok
				return next, 0, ok && n > 0
			}
		}
		state, now, changed := k.repaired(l, s, now)
		next, ok := l.Admit(state, now, n)
		allowed = ok
		return l.written(next, now, changed || ok && n > 0)
	})
	if r >= keystore.Evicted {
		k.warnFull()
	}
	return allowed && r != keystore.Full
}

// misuse is the error of a negative cost, or of a literal.
func (k *keyed[S, V]) misuse(n int64) error {
	if k.store == nil {
		return errLiteral
	}
	return costError(n)
}

// errLiteral explains TokenBucket{}.
var errLiteral = errors.New("algo: the limiter is a literal without a limit: make it with its constructor, such as NewTokenBucket")

// acquireAt is Acquire at a reading of the clock; nil: at a new one. It writes to
// lease in place: it is large, and copying it would cost more than deciding.
func (k *keyed[S, V]) acquireAt(lease *Lease, reading *keystore.Reading, key string, n int64) error {
	if n < 0 || k.store == nil {
		return k.misuse(n)
	}
	now, r := k.store.Update(key, reading.OrNow(&k.store.Clock), func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		if k.words {
			at := l.at(s.ID, now)
			next, a, q := l.Answer(s.State, at, n)
			if a.Allowed && n > 0 {
				lease.setAnswer(a)
				lease.setQuota(q)
				lease.handle.setCharge(l.Charge(next, at, n, a.Delay), s.Mark)
				return next, 0, true
			}
			if l.Plausible(s.State, at) {
				lease.setAnswer(a)
				lease.setQuota(q)
				if a.Allowed {
					lease.handle.setCharge(l.Charge(next, at, n, 0), s.Mark)
				}
				return next, 0, false
			}
		}
		state, now, changed := k.repaired(l, s, now)
		next, a, q := l.Answer(state, now, n)
		lease.setAnswer(a)
		lease.setQuota(q)
		if a.Allowed {
			lease.handle.setCharge(l.Charge(next, now, n, a.Delay), s.Mark)
			changed = changed || n > 0
		}
		return l.written(next, now, changed)
	})
	if r >= keystore.Evicted {
		k.warnFull()
	}
	switch {
	case r == keystore.Full, k.unsettleable(key, n, now):
		lease.Decision = k.noRoom(key, now)
	case lease.Allowed:
		lease.handle.Key, lease.handle.N = key, n
		lease.releaser = &k.corrections
	}
	return nil
}

// unsettleable reports whether a request costs nothing, and the table has no room for what it is settled to.
func (k *keyed[S, V]) unsettleable(key string, n, now int64) bool {
	return n == 0 && k.denyNew && !k.store.HasRoom(key, now)
}

// warnFull logs that a new key found the table full.
func (k *keyed[S, V]) warnFull() {
	k.fullWarning.Log("algo.full", "algo: the table of a limiter is full: raise MaxKeys, or find the client that invents keys", func() string {
		return fmt.Sprintf("overflowed=%d", k.Overflowed())
	})
}

// Peek returns the answer of Acquire, and charges nothing; see [Peeker].
func (k *keyed[S, V]) Peek(_ context.Context, key string, n int64) (d Decision, err error) {
	if n < 0 || k.store == nil {
		return d, k.misuse(n)
	}
	now, r := k.store.Update(key, keystore.Now, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.repaired(l, s, now)
		a, q := l.Peek(state, now, n)
		d.setAnswer(a)
		d.setQuota(q)
		return state, l.Expiry(state, now), changed
	})
	if r == keystore.Full || n > 0 && d.Allowed && !k.store.HasRoom(key, now) {
		return k.noRoom(key, now), nil
	}
	return d, nil
}

// repaired returns a state that l can decide on, and the instant to decide at.
//
// A state that l cannot have written by now is one of two things. Either now was
// read late: then a new reading replaces it. Or the state is left over from
// another limit: then it is clamped, and where that cuts something off, earlier
// charges cannot be refunded any more.
func (k *keyed[S, V]) repaired(l *limit[S], s keystore.State[S], now int64) (_ S, at int64, changed bool) {
	at = l.at(s.ID, now)
	if l.Plausible(s.State, at) {
		return s.State, at, false
	}
	return k.clamp(l, s)
}

func (k *keyed[S, V]) clamp(l *limit[S], s keystore.State[S]) (_ S, at int64, changed bool) {
	at = l.at(s.ID, k.store.Clock.Now())
	if l.Plausible(s.State, at) {
		return s.State, at, false
	}
	state, cut := l.Clamp(s.State, at)
	if cut {
		s.Invalidate()
	}
	return state, at, cut || !k.words || state != s.State
}

// written is the result of an update that leads to state.
func (l *limit[S]) written(state S, now int64, changed bool) (S, int64, bool) {
	if !changed {
		return state, 0, false
	}
	return state, l.Expiry(state, now), true
}

// at is now for the key with that hash.
func (l *limit[S]) at(hash uint64, now int64) int64 {
	if l.phase == nil {
		return now
	}
	return now + l.phase(hash)
}

// Reset gives key a fresh limit. Its earlier admissions cannot be refunded any more.
// It has no effect on a key without debt.
func (k *keyed[S, V]) Reset(key string) {
	if !k.store.Has(key) {
		return
	}
	var was keystore.State[S]
	_, result := k.store.Update(key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		now = l.at(s.ID, now)
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

// Len counts the keys that have spent something that still weighs. It walks
// the table.
func (k *keyed[S, V]) Len() int {
	l, now := k.limit.Load(), k.store.Clock.Now()
	return k.store.Len(func(hash uint64) int64 {
		if l.live != nil {
			return l.live(l.at(hash, now))
		}
		return now + 1
	})
}

// Overflowed counts the charges to new keys that found the table full, and
// replaced another one or were denied; see [MaxKeys]. If it grows, MaxKeys is too small or a client invents
// keys; a log line with the code algo.full says so once a minute.
func (k *keyed[S, V]) Overflowed() uint64 { return k.store.Overflowed() }

// Cap is the number of keys with debt that are sure to have room, see [MaxKeys]. More may
// find room, so Len may be larger.
func (k *keyed[S, V]) Cap() int { return k.store.Cap() }

// Describe returns the most units that fit at once, and the time in which they
// come back.
func (k *keyed[S, V]) Describe() (Description, bool) {
	l := k.limit.Load()
	if l == nil || l.window == 0 {
		return Description{}, false
	}
	return Description{Quota: l.Limit(), Window: l.window}, true
}
