package adaptive

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// KeyedLimiter keeps the units in flight of every key at or below a limit:
// requests per client address (limit_conn of nginx), calls per dependency (the
// semaphores of Hystrix), statements per tenant. It is an [algo.Limiter].
//
// Bound: at most the limit in flight for any key, exactly. A key is remembered
// for as long as it has something in flight and not a moment longer, so
// nothing is ever forgotten that still counts, and memory follows what runs,
// not who has ever asked. When [WithMaxKeys] keys have something in flight, a
// request with yet another key is denied with the reason Overload.
//
// A key at its limit is denied with the reason Quota: it is this caller that
// has what it may have, not the service that is full. RetryAfter is the time
// in which one of the key's places is expected to be free, by the smoothed
// duration of a part of all requests.
//
// Do not use it to protect the service itself: many keys within their limits
// are as heavy as one above it. Put a [Limiter] behind it.
type KeyedLimiter struct {
	limit   int64
	limitOf func(key string) int // nil: limit for all
	maxKeys int64
	hash    machine.Hash
	keys    atomic.Int64
	mean    atomic.Int64 // smoothed duration, nanoseconds
	shards  [shards]shard
}

const shards = 64

// shard is a part of the keys under one lock, on two cache lines of its own.
type shard struct {
	mu     sync.Mutex
	counts map[string]int64
	asked  uint32
	_      [128 - 24]byte
}

// timedEvery is how many admissions share one measurement of the duration, which
// costs two readings of the clock, where only RetryAfter depends on it.
const timedEvery = 16

// WithMaxKeys sets how many keys may have something in flight at the same time,
// 1 or more; the default is 65536.
func WithMaxKeys(n int) Option {
	return Option{"WithMaxKeys", func(s *settings) { s.maxKeys = n }}
}

// WithLimitOf gives keys limits of their own: f is asked for each request and
// must be fast. Where it returns 0 or less the common limit holds. A nil f panics.
func WithLimitOf(f func(key string) int) Option {
	if f == nil {
		panic("adaptive: WithLimitOf needs a function")
	}
	return Option{"WithLimitOf", func(s *settings) { s.limitOf = f }}
}

// PerKey makes a limiter that admits n units in flight for each key, 1 or more.
// It takes the options [WithMaxKeys] and [WithLimitOf].
func PerKey(n int, opts ...Option) (*KeyedLimiter, error) {
	set := settings{min: 1, max: noLimit, maxKeys: 1 << 16}
	if err := configure("PerKey", &set, opts, "WithMaxKeys", "WithLimitOf"); err != nil {
		return nil, err
	}
	switch {
	case n < 1 || n > noLimit:
		return nil, fmt.Errorf("adaptive: PerKey: limit is %d, want 1 to %d", n, noLimit)
	case set.maxKeys < 1:
		return nil, fmt.Errorf("adaptive: PerKey: max keys is %d, want 1 or more", set.maxKeys)
	}
	k := &KeyedLimiter{
		limit: int64(n), limitOf: set.limitOf, maxKeys: int64(set.maxKeys), hash: machine.NewHash(),
	}
	for i := range k.shards {
		k.shards[i].counts = make(map[string]int64)
	}
	return k, nil
}

// Acquire admits n units of work under key if they fit, and returns at once.
// n = 0 asks without taking a place; a negative n is [algo.ErrCost].
func (k *KeyedLimiter) Acquire(_ context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	limit := k.of(key)
	inFlight, timed, fits, room := k.enter(key, n, limit)
	lease.Limit, lease.Remaining = limit, max(limit-inFlight, 0)
	switch {
	case n > limit:
		lease.Reason, lease.RetryAfter = algo.Never, algo.Forever
	case !fits:
		k.deny(&lease.Decision, algo.Quota, inFlight, inFlight+n-limit)
	case !room:
		k.deny(&lease.Decision, algo.Overload, k.keys.Load(), 1)
	case n == 0:
		lease.Allowed = true
	default:
		lease.Allowed = true
		h := algo.Handle{Key: key, N: n}
		if timed {
			h.At = now()
		}
		lease = algo.NewLease(lease.Decision, k, h)
	}
	return lease, nil
}

// of is the limit of a key.
func (k *KeyedLimiter) of(key string) int64 {
	if k.limitOf != nil {
		if n := k.limitOf(key); n > 0 {
			return int64(min(n, noLimit))
		}
	}
	return k.limit
}

func (k *KeyedLimiter) shard(key string) *shard {
	return &k.shards[k.hash.Of(key)%shards]
}

// enter takes n places of key if they are free, and returns how many are taken
// then. A new key needs room as well.
func (k *KeyedLimiter) enter(key string, n, limit int64) (inFlight int64, timed, fits, room bool) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.counts[key]
	if n > limit-was || n == 0 {
		return was, false, n == 0, true
	}
	if was == 0 && !k.reserve() {
		return was, false, true, false
	}
	s.counts[key] = was + n
	s.asked++
	return was + n, s.asked%timedEvery == 1, true, true
}

// reserve counts one more key, unless there are as many as there may be.
func (k *KeyedLimiter) reserve() bool {
	for {
		n := k.keys.Load()
		if n >= k.maxKeys {
			return false
		}
		if k.keys.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (k *KeyedLimiter) deny(d *algo.Decision, r algo.Reason, inFlight, lacking int64) {
	mean := k.mean.Load()
	d.Reason, d.RetryAfter = r, drain(mean, inFlight, lacking)
	d.NextAfter = drain(mean, inFlight, 1)
	d.ResetAfter = max(d.RetryAfter, drain(mean, inFlight, inFlight))
}

// change adds to the count of a key, and forgets a key whose count is 0.
func (k *KeyedLimiter) change(key string, by int64) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.counts[key]
	is := was + by
	switch {
	case is > 0:
		s.counts[key] = is
	case was > 0:
		delete(s.counts, key)
	}
	if was > 0 != (is > 0) {
		k.keys.Add(sign(is) - sign(was))
	}
}

func sign(n int64) int64 { return min(max(n, 0), 1) }

// Release frees the places of an admission. It implements [algo.Releaser];
// callers use the lease's Release.
func (k *KeyedLimiter) Release(h algo.Handle, o algo.Outcome) {
	k.change(h.Key, -weight(h.N))
	if h.At == 0 || o != algo.Succeeded {
		return
	}
	took, mean := max(now()-h.At, 1), k.mean.Load()
	if mean > 0 {
		took = max(mean+(took-mean)/16, 1)
	}
	k.mean.Store(took)
}

// Settle corrects the weight of an admission, upwards even above the limit. It
// implements [algo.Releaser]; callers use the lease's Settle.
func (k *KeyedLimiter) Settle(h algo.Handle, actual int64) {
	k.change(h.Key, weight(actual)-weight(h.N))
}

// InFlight is how many units of key are in flight at the moment.
func (k *KeyedLimiter) InFlight(key string) int {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(min(s.counts[key], math.MaxInt))
}

// Len counts the keys that have something in flight at the moment.
func (k *KeyedLimiter) Len() int { return int(k.keys.Load()) }

// Describe says what callers are promised: the common limit, in concurrent
// requests; nothing if keys have limits of their own.
func (k *KeyedLimiter) Describe() (algo.Description, bool) {
	return algo.Description{Quota: k.limit, Unit: algo.ConcurrentRequests}, k.limitOf == nil
}
