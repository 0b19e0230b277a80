package adaptive

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// KeyedLimiter keeps the units in flight of every key at or below a limit: requests
// per client address (limit_conn of nginx), calls per dependency (the semaphores of
// Hystrix), statements per tenant. It is an [algo.Limiter].
//
// Bound: for any key, at most the limit in flight, exactly. A key is stored while it
// has units in flight and no longer, so no count is ever lost, and memory depends on
// the work in flight only. While [WithMaxKeys] keys have units in flight, a request
// with another key is denied with the reason Overload.
//
// A key at its limit is denied with the reason Quota, because the caller and not the
// service is at its limit; the empty key, which all callers share, with Overload. RetryAfter is the time in which one of the key's slots is
// expected to be free, by the smoothed duration of a sample of all requests.
//
// Do not use it to protect the service itself: many keys within their limits are as
// heavy as one above it. Put a [Limiter] behind it.
type KeyedLimiter struct {
	limit   int64
	limitOf func(ctx context.Context, key string) int // nil: limit for all
	maxKeys int64
	seed    maphash.Seed
	keys    atomic.Int64
	mean    atomic.Int64 // smoothed duration, nanoseconds
	shards  [shards]shard
}

const shards = 64

// shard holds a part of the keys under one lock, on cache lines of its own.
type shard struct {
	mu         sync.Mutex
	counts     map[string]int64
	admissions uint32
	_          [128 - 24]byte
}

// WithMaxKeys sets the number of keys that may have units in flight at the same
// time, 1 or more. The default is 65536.
func WithMaxKeys(n int) Option {
	return wiring.With("WithMaxKeys", n)
}

// WithLimitOf gives keys limits of their own, by key or by the user in ctx. f is called once per
// request and must be fast. A result of 0 denies every request of the key with [algo.Never], without a
// retry time, for as long as f returns it; a negative result means the common limit. A nil f panics.
func WithLimitOf(f func(ctx context.Context, key string) int) Option {
	if f == nil {
		panic("adaptive: WithLimitOf needs a function")
	}
	return wiring.With("WithLimitOf", f)
}

// PerKey makes a limiter that admits n units in flight per key, 1 to 2147483647. It
// takes the options [WithMaxKeys] and [WithLimitOf].
func PerKey(n int, opts ...Option) (*KeyedLimiter, error) {
	set, err := wiring.Read("PerKey", opts, "WithMaxKeys", "WithLimitOf")
	if err != nil {
		return nil, fmt.Errorf("adaptive: %w", err)
	}
	maxKeys := wiring.Get(set, "WithMaxKeys", 1<<16)
	limitOf := wiring.Get[func(context.Context, string) int](set, "WithLimitOf", nil)
	switch {
	case n < 1 || n > noLimit:
		return nil, fmt.Errorf("adaptive: PerKey: limit is %d, want 1 to %d", n, noLimit)
	case maxKeys < 1:
		return nil, fmt.Errorf("adaptive: PerKey: max keys is %d, want 1 or more", maxKeys)
	}
	k := &KeyedLimiter{
		limit: int64(n), limitOf: limitOf, maxKeys: int64(maxKeys), seed: maphash.MakeSeed(),
	}
	for i := range k.shards {
		k.shards[i].counts = make(map[string]int64)
	}
	return k, nil
}

// Acquire admits n units of work under key if they fit, and returns at once. n = 0
// is a peek; a negative n is [algo.ErrCost].
func (k *KeyedLimiter) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	limit := k.limitFor(ctx, key)
	inFlight, timed, fits, room := k.enter(key, n, limit)
	k.decide(&lease.Decision, key, n, limit, inFlight, fits, room)
	h := algo.Handle{Key: key, N: n} // also for 0 units: Settle may take slots
	if timed {
		h.At = machine.Real{}.Now()
	}
	return algo.NewLease(lease.Decision, k, h), nil
}

// Peek answers as Acquire does, and takes no slot; see [algo.Peeker].
func (k *KeyedLimiter) Peek(ctx context.Context, key string, n int64) (d algo.Decision, err error) {
	if n < 0 {
		return d, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	limit, inFlight := k.limitFor(ctx, key), int64(k.InFlight(key))
	room := n == 0 || inFlight > 0 || k.keys.Load() < k.maxKeys
	k.decide(&d, key, n, limit, inFlight, n == 0 || n <= limit-inFlight, room)
	return d, nil
}

// decide writes the answer for n units of a key with inFlight units in flight.
func (k *KeyedLimiter) decide(d *algo.Decision, key string, n, limit, inFlight int64, fits, room bool) {
	d.Limit, d.Remaining = limit, max(limit-inFlight, 0)
	switch {
	case n > limit:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	case !fits:
		k.deny(d, blame(key), cause.Limit, inFlight, inFlight+n-limit)
	case !room:
		k.deny(d, algo.Overload, cause.Keys, k.keys.Load(), 1)
	default:
		d.Allowed = true
	}
}

// blame returns the reason of a denial: Overload for the empty key, which all callers share.
func blame(key string) algo.Reason {
	if key == "" {
		return algo.Overload
	}
	return algo.Quota
}

func (k *KeyedLimiter) limitFor(ctx context.Context, key string) int64 {
	if k.limitOf != nil {
		if n := k.limitOf(ctx, key); n >= 0 {
			return int64(min(n, noLimit))
		}
	}
	return k.limit
}

func (k *KeyedLimiter) shard(key string) *shard {
	return &k.shards[maphash.String(k.seed, key)%shards]
}

// enter takes n slots of key if they are free, and returns the units then in flight. A new key also
// needs room in the table.
func (k *KeyedLimiter) enter(key string, n, limit int64) (inFlight int64, timed, fits, room bool) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	inFlight = s.counts[key]
	if n > limit-inFlight || n == 0 {
		return inFlight, false, n == 0, true
	}
	if inFlight == 0 && !k.reserve() {
		return 0, false, true, false
	}
	s.counts[key] = inFlight + n
	s.admissions++
	return inFlight + n, s.admissions%sampleOneIn == 1, true, true
}

// reserve counts one more key, up to the maximum.
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

func (k *KeyedLimiter) deny(d *algo.Decision, r algo.Reason, c algo.Cause, inFlight, lacking int64) {
	mean := k.mean.Load()
	d.Reason, d.Cause, d.RetryAfter = r, c, retryEstimate(mean, inFlight, lacking)
	d.NextAfter = retryEstimate(mean, inFlight, 1)
	d.ResetAfter = max(d.RetryAfter, retryEstimate(mean, inFlight, inFlight))
}

// add changes a key's count and removes the key at 0.
func (k *KeyedLimiter) add(key string, delta int64) {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.counts[key]
	after := before + delta
	switch {
	case after > 0:
		s.counts[key] = after
	case before > 0:
		delete(s.counts, key)
	}
	if delta := oneIf(after) - oneIf(before); delta != 0 {
		k.keys.Add(delta)
	}
}

func oneIf(n int64) int64 { return min(max(n, 0), 1) }

// Release frees the slots of an admission. It implements [algo.Releaser]; callers
// use the lease's Release.
func (k *KeyedLimiter) Release(h algo.Handle, o algo.Outcome) {
	k.add(h.Key, -weight(h.N))
	if h.At == 0 || o != algo.Succeeded {
		return
	}
	took, mean := max(machine.Real{}.Now()-h.At, 1), k.mean.Load()
	if mean > 0 {
		took = max(mean+(took-mean)/16, 1)
	}
	k.mean.Store(took)
}

// Settle corrects the weight of an admission, upwards even above the limit. It
// implements [algo.Releaser]; callers use the lease's Settle.
func (k *KeyedLimiter) Settle(h algo.Handle, actual int64) {
	k.add(h.Key, weight(actual)-weight(h.N))
}

// InFlight returns the current number of units of key in flight.
func (k *KeyedLimiter) InFlight(key string) int {
	s := k.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(min(s.counts[key], math.MaxInt))
}

// Len returns the current number of keys with units in flight.
func (k *KeyedLimiter) Len() int { return int(k.keys.Load()) }

// About returns the common limit, in concurrent requests; no Quota if keys have
// limits of their own.
func (k *KeyedLimiter) About() algo.Description {
	d := algo.Description{Quota: k.limit, Unit: algo.ConcurrentRequests, NeedsRelease: true}
	if k.limitOf != nil {
		d.Quota = 0
	}
	return d
}
