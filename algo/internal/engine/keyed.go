// Package engine applies an algorithm of package decide to the states of keys: it charges,
// looks, settles, resets and changes the limit in use. It knows no limiter and no lease:
// package algo makes a RateLimiter of an [Engine], as do the packages algo/marker and
// algo/shares.
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/warning"
)

// Engine is a [Keyed] of any state.
type Engine interface {
	// Acquire charges n units to key if they fit at an instant, or at keystore.Now, and writes the
	// answer to d.
	Acquire(d *Decided, key string, at, n int64)
	// Allow charges n units to key if they fit without a delay. It denies a negative n.
	Allow(key string, n int64) bool
	// Peek answers for n units, 0 or more, and charges nothing. full reports that key is new
	// and that the table has no room for it.
	Peek(key string, n int64) (a decide.Answer, q decide.Quota, full bool)
	// Settle corrects the cost of a charge from c.N to actual units.
	Settle(key string, c Charge, actual int64)
	// Refund gives back up to n units of key, of whatever charge, as far as they weigh, and
	// returns how many, begun ones too.
	Refund(key string, n int64) int64
	// Reset gives key a fresh limit. Its earlier charges cannot be refunded any more.
	Reset(key string)
	// Limit returns the most units that fit at once, and the time in which they come
	// back; 0 if nothing is promised.
	Limit() (int64, time.Duration)
	// Live counts the keys that have spent something that still weighs. It walks the table.
	Live() int
	// Room is the number of live keys that are sure to have room.
	Room() int
	// Overflowed counts the charges to new keys that found the table full.
	Overflowed() uint64
	// SetName names the limit in warnings.
	SetName(name string)
	// Clock is the clock of all instants.
	Clock() *keystore.Clock
}

// Decided is the answer of Acquire. It has a Charge if it is allowed.
type Decided struct {
	decide.Answer
	decide.Quota
	Charge Charge
	Full   bool // the key is new, and the table has no room for it
}

// Charge identifies an admission in refunds and settlements.
type Charge struct {
	decide.Charge
	Mark int64
}

// Decider is a limit with immutable parameters over the state S of one key; see
// package decide.
type Decider[S any] interface {
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

// Limit is a decider in use.
type Limit[S any] struct {
	Decider[S]
	Window time.Duration           // in which Limit units are promised; 0: nothing is
	Live   func(now int64) int64   // the lowest expiry of a key that has spent something; nil: now + 1
	Phase  func(hash uint64) int64 // added to every instant of a key, or nil
	// Initial is the word of a key that was never seen, in a store of words. Only the
	// first limit sets it.
	Initial int64
}

// Limiter is set by package algo: it makes an *algo.RateLimiter of an engine. It is a variable
// so that algo/marker and algo/shares need no name in the public API of algo.
var Limiter func(Engine) any

// Config bounds the table of keys.
type Config struct {
	MaxKeys int              // 0: DefaultMaxKeys
	DenyNew bool             // a new key is denied in a full table, and replaces no other
	Now     func() time.Time // nil: the system's clock
}

// DefaultMaxKeys is the room of a table for keys.
const DefaultMaxKeys = 1 << 20

func (c Config) store() keystore.Config {
	return keystore.Config{MaxKeys: cmp.Or(c.MaxKeys, DefaultMaxKeys), Evict: !c.DenyNew, Now: c.Now}
}

// NewWords makes a store of one word a key.
func NewWords(c Config) *keystore.Store[int64, struct{}] {
	store := new(keystore.Store[int64, struct{}])
	store.Init(c.store(), nil)
	return store
}

// NewValues makes a store of values that inherit copies.
func NewValues[V any](c Config, inherit func(heir, from *V)) *keystore.Store[*V, V] {
	store := new(keystore.Store[*V, V])
	store.Init(c.store(), inherit)
	return store
}

// Keyed applies a limit to the states of its keys: an int64 with V struct{}, or a *V.
type Keyed[S comparable, V any] struct {
	store     *keystore.Store[S, V]
	limit     atomic.Pointer[Limit[S]]
	words     bool // S is int64: every admitted state is plausible, and is its own expiry
	denyNew   bool
	name      atomic.Pointer[string] // in warnings; nil: there is none
	fullPause warning.Pause
}

// Init makes k ready for [Keyed.Change]. Several may have one store. It is not a
// constructor because k must not move.
func (k *Keyed[S, V]) Init(store *keystore.Store[S, V], c Config) {
	var state S
	_, k.words = any(state).(int64)
	k.store, k.denyNew = store, c.DenyNew
}

// ErrLiteral explains algo.RateLimiter{}.
var ErrLiteral = errors.New("algo: the limiter is a literal without a limit: make it with its constructor, such as NewTokenBucket")

// Of makes an engine with a limit that does not change, over a store that several may share.
func Of[S comparable, V any](store *keystore.Store[S, V], c Config, l Limit[S]) Engine {
	k := new(Keyed[S, V])
	k.Init(store, c)
	k.limit.Store(&l)
	return k
}

// Store is the states, for decisions in line; nil before Init.
func (k *Keyed[S, V]) Store() *keystore.Store[S, V] { return k.store }

// InUse is the limit, which a decision loads after the state.
func (k *Keyed[S, V]) InUse() *Limit[S] { return k.limit.Load() }

// Change replaces the limit by the one that build makes from the decider in use, nil at
// first. It takes the same time for one key and for millions, because no state is touched.
// Changes must not run at the same time.
func (k *Keyed[S, V]) Change(build func(old Decider[S], clock *keystore.Clock) (Limit[S], error)) error {
	var old Decider[S]
	if l := k.limit.Load(); l != nil {
		old = l.Decider
	}
	l, err := build(old, &k.store.Clock)
	if err != nil {
		return err
	}
	if old == nil && l.Initial != 0 {
		k.store.SetInitial(l.Initial)
	}
	k.limit.Store(&l)
	return nil
}

// Acquire is part of [Engine].
func (k *Keyed[S, V]) Acquire(d *Decided, key string, at, n int64) {
	now, r := k.store.Update(key, at, func(s keystore.State[S], now int64) (next S, _ int64, _ bool) {
		l := k.limit.Load()
		state, now, changed := k.Repaired(l, s, now)
		next, d.Answer, d.Quota = l.Answer(state, now, n)
		if d.Allowed {
			d.Charge = Charge{l.Charge(next, now, n, d.Delay), s.Mark}
			changed = changed || n > 0
		}
		return l.Written(next, now, changed)
	})
	if d.Full = k.Refused(key, now, n, r); d.Full {
		d.Answer, d.Quota = k.NoRoom(key, now)
	}
}

// Allow is part of [Engine].
func (k *Keyed[S, V]) Allow(key string, n int64) (allowed bool) {
	if k.store == nil {
		panic(ErrLiteral)
	}
	if n < 0 {
		return false
	}
	_, r := k.store.Update(key, keystore.Now, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		if k.words {
			at := l.At(s.ID, now)
			next, ok := l.Admit(s.State, at, n)
			if ok || l.Plausible(s.State, at) {
				allowed = ok
				return next, 0, ok && n > 0
			}
		}
		state, now, changed := k.Repaired(l, s, now)
		next, ok := l.Admit(state, now, n)
		allowed = ok
		return l.Written(next, now, changed || ok && n > 0)
	})
	if r >= keystore.Evicted {
		k.warnFull()
	}
	return allowed && r != keystore.Full
}

// Peek is part of [Engine].
func (k *Keyed[S, V]) Peek(key string, n int64) (a decide.Answer, q decide.Quota, full bool) {
	now, r := k.store.Update(key, keystore.Now, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.Repaired(l, s, now)
		a, q = l.Peek(state, now, n)
		return state, l.Expiry(state, now), changed
	})
	if full = r == keystore.Full || n > 0 && a.Allowed && !k.store.HasRoom(key, now); full {
		a, q = k.NoRoom(key, now)
	}
	return a, q, full
}

// Refused reports whether the table had no room for what was charged, or, where n is 0, has
// none for what it is settled to. r is the result of the update.
func (k *Keyed[S, V]) Refused(key string, now, n int64, r keystore.Result) bool {
	return (r >= keystore.Evicted || n == 0) && k.refused(key, now, n, r) // no call in most cases
}

func (k *Keyed[S, V]) refused(key string, now, n int64, r keystore.Result) bool {
	if r >= keystore.Evicted {
		k.warnFull()
	}
	return r == keystore.Full || n == 0 && k.denyNew && !k.store.HasRoom(key, now)
}

// NoRoom answers a new key that found the table full.
func (k *Keyed[S, V]) NoRoom(key string, now int64) (decide.Answer, decide.Quota) {
	after := k.store.RoomAfter(key, now)
	return decide.Answer{RetryAfter: after}, decide.Quota{Limit: k.limit.Load().Limit(), NextAfter: after, ResetAfter: after}
}

// warnFull logs that a new key found the table full.
func (k *Keyed[S, V]) warnFull() {
	if !k.fullPause.Over(time.Minute) {
		return
	}
	quota, window := k.Limit()
	name := fmt.Sprintf("%d-per-%v", quota, window)
	if given := k.name.Load(); given != nil {
		name = *given
	}
	warnFull.Print("limit", name, "overflowed", strconv.FormatUint(k.Overflowed(), 10))
}

var warnFull = warning.Line{
	Code:    "algo.full",
	Message: "algo: the table of a limiter is full",
	Do:      "raise MaxKeys, or find the client that invents keys",
}

// SetName is part of [Engine].
func (k *Keyed[S, V]) SetName(name string) { k.name.Store(&name) }
