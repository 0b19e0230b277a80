package algo

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
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
	store  *keystore.Store[S, V]
	limit  atomic.Pointer[limit[S]]
	words  bool // S is int64
	onFull FullPolicy
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
	return keystore.Config{MaxKeys: s.maxKeys(), Share: s.OnFull == Overflow}
}

// use makes k ready. It is not a constructor because k must not move.
func (k *keyed[S, V]) use(store *keystore.Store[S, V], p FullPolicy) {
	var state S
	_, k.words = any(state).(int64)
	k.store, k.onFull = store, p
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (k *keyed[S, V]) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	k.acquireAt(&lease, k.store.Clock.Now(), key, n)
	return lease, nil
}

// Allow is the short form of Acquire for callers that need only Allowed. It
// does not admit with a Delay: units that do not fit now are denied. A negative
// n is denied.
func (k *keyed[S, V]) Allow(key string, n int64) bool {
	return n >= 0 && k.allowAt(k.store.Clock.Now(), key, n)
}

// acquireAt writes to lease in place: it is large, and copying it would cost
// more than deciding.
func (k *keyed[S, V]) acquireAt(lease *Lease, at int64, key string, n int64) {
	var charged bool
	now, r := k.store.Update(key, at, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		if l.phase != nil {
			now += l.phase(s.ID)
		}
		state, changed := s.State, false
		if !k.words && !l.Plausible(state, now) {
			state, now, changed = k.clamp(l, s)
		}
		next, a, q := l.Answer(state, now, n)
		if charged = a.Allowed && n > 0; !charged && k.words && !l.Plausible(state, now) {
			state, now, changed = k.clamp(l, s)
			next, a, q = l.Answer(state, now, n)
			charged = a.Allowed && n > 0
		}
		lease.Decision.set(a, q)
		if !charged {
			return next, k.expiry(l, next, now, changed), changed
		}
		c, h := l.Charge(next, now, n, a.Delay), &lease.handle
		h.Key, h.N, h.At = key, n, c.At
		h.State[0], h.State[1], h.State[2] = c.A, c.B, s.Mark
		return next, k.expiry(l, next, now, true), true
	})
	switch {
	case r == keystore.Full:
		lease.Decision = k.noRoom(key, now)
	case charged:
		lease.releaser = (*corrections[S, V])(k)
	}
}

func (k *keyed[S, V]) allowAt(at int64, key string, n int64) (allowed bool) {
	_, r := k.store.Update(key, at, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		if l.phase != nil {
			now += l.phase(s.ID)
		}
		state, changed := s.State, false
		if !k.words && !l.Plausible(state, now) {
			state, now, changed = k.clamp(l, s)
		}
		next, ok := l.Admit(state, now, n)
		if (!ok || n == 0) && k.words && !l.Plausible(state, now) {
			state, now, changed = k.clamp(l, s)
			next, ok = l.Admit(state, now, n)
		}
		allowed = ok
		changed = changed || ok && n > 0
		return next, k.expiry(l, next, now, changed), changed
	})
	if r == keystore.Full {
		return k.onFull == AllowNew
	}
	return allowed
}

// expiry is that of a changed value. A word is its own.
func (k *keyed[S, V]) expiry(l *limit[S], state S, now int64, changed bool) int64 {
	if k.words || !changed {
		return 0
	}
	return l.Expiry(state, now)
}

// peek returns what Acquire would answer for n >= 0, and charges nothing.
func (k *keyed[S, V]) peek(key string, n int64) (d Decision) {
	now, r := k.store.Update(key, k.store.Clock.Now(), func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.plausible(l, s, now)
		a, q := l.Peek(state, now, n)
		d.set(a, q)
		return state, l.Expiry(state, now), changed
	})
	if r == keystore.Full || n > 0 && d.Allowed && !k.store.HasRoom(key, now) {
		return k.noRoom(key, now)
	}
	return d
}

// plausible returns a state that l can decide on, and the instant to decide at.
//
// A state that l cannot have written by now is one of two things. Either now was
// read late: then a new reading replaces it. Or the state is left over from
// another limit: then it is clamped, and where that cuts something off, earlier
// charges cannot be refunded any more.
func (k *keyed[S, V]) plausible(l *limit[S], s keystore.State[S], now int64) (_ S, at int64, changed bool) {
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

// at is now for the key with that hash.
func (l *limit[S]) at(hash uint64, now int64) int64 {
	if l.phase == nil {
		return now
	}
	return now + l.phase(hash)
}

// noRoom answers a new key that found the table full and must not share.
func (k *keyed[S, V]) noRoom(key string, now int64) Decision {
	limit := k.limit.Load().Limit()
	if k.onFull == AllowNew {
		return Decision{Allowed: true, Source: SourceOff, Limit: limit, Remaining: limit}
	}
	after := keystore.ToDuration(k.store.RoomAfter(key, now))
	return Decision{Reason: Quota, Limit: limit, RetryAfter: after, NextAfter: after, ResetAfter: after}
}

// set converts what a limit decided.
func (d *Decision) set(a decide.Answer, q decide.Quota) {
	d.Allowed, d.Reason, d.Source = a.Allowed, Admitted, SourceLocal
	d.Limit, d.Remaining = q.Limit, q.Remaining
	d.NextAfter, d.ResetAfter = keystore.ToDuration(q.NextAfter), keystore.ToDuration(q.ResetAfter)
	d.Delay, d.RetryAfter = keystore.ToDuration(a.Delay), keystore.ToDuration(a.RetryAfter)
	switch {
	case a.Allowed:
	case a.Never:
		d.Reason, d.RetryAfter = Never, Forever
	default:
		d.Reason = Quota
	}
}

// Reset gives key a fresh limit. Earlier admissions cannot be refunded any
// more; neither can those of a few other keys.
func (k *keyed[S, V]) Reset(key string) {
	var was keystore.State[S]
	_, result := k.store.Update(key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		now = l.at(s.ID, now)
		was = s
		s.Invalidate()
		state := l.Reset(s.State, now)
		return state, max(l.Expiry(state, now), now), true
	})
	if result == keystore.Updated {
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

// Overflowed counts the charges to new keys that found the table full. If it
// grows, MaxKeys is too small or a client invents keys.
func (k *keyed[S, V]) Overflowed() uint64 { return k.store.Overflowed() }

// Describe returns the most units that fit at once, and the time in which they
// come back.
func (k *keyed[S, V]) Describe() (Description, bool) {
	l := k.limit.Load()
	if l.window == 0 {
		return Description{}, false
	}
	return Description{Quota: l.Limit(), Window: l.window}, true
}

// corrections is the Releaser of a keyed, so that its methods are not those of
// every limiter.
type corrections[S comparable, V any] keyed[S, V]

// Release refunds a canceled admission as far as it still weighs. With any
// other outcome the charge stays.
func (k *corrections[S, V]) Release(h Handle, o Outcome) {
	if o == Canceled {
		k.refund(h, h.N)
	}
}

// Settle corrects the cost of an admission.
func (k *corrections[S, V]) Settle(h Handle, actual int64) {
	if actual <= h.N {
		k.refund(h, h.N-actual)
		return
	}
	k.store.Update(h.Key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, _ := (*keyed[S, V])(k).plausible(l, s, now)
		state, cut := l.ForceCharge(state, h.charge(), now, actual-h.N)
		if cut {
			s.Invalidate()
		}
		return state, l.Expiry(state, now), true
	})
}

// refund gives n units of an admission back, at most what it still weighs.
func (k *corrections[S, V]) refund(h Handle, n int64) {
	c, mark := h.charge(), h.State[2]
	most := k.limit.Load().MaxRefund(c, n)
	k.store.Refund(h.Key, mark, most, func(s keystore.State[S], now, shift int64) (S, int64, int64, bool) {
		l := k.limit.Load()
		state, now, changed := (*keyed[S, V])(k).plausible(l, s, now)
		if changed && !s.Valid(mark) {
			return state, l.Expiry(state, now), 0, true
		}
		state, given := l.Refund(state, c, now, n, shift)
		return state, l.Expiry(state, now), given, given > 0 || changed
	})
}

// charge is what decide knows of an admission.
func (h *Handle) charge() decide.Charge {
	return decide.Charge{N: h.N, At: h.At, A: h.State[0], B: h.State[1]}
}
