package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// Ban bans keys that keep exceeding their limit. The first ban lasts a fixed time, each further ban
// twice as long as the one before, up to a maximum; the doublings expire as slowly as they came. Use
// it for callers that ignore Retry-After, and against guessing attacks.
//
// A key is banned after a given number of quota denials within one period, counted from the first of
// them. While a key is banned, Ban denies its requests of any cost and its peeks with the Reason
// [algo.Banned] and the rest of the ban as RetryAfter, without calling the limiter. These denials do
// not count, so a ban ends however often the caller retries. Nor do bans of the limiter itself,
// denials for overload or for a cost that never fits, peeks, and requests that wait for RetryAfter
// ([algo.Tentative]). The empty key is shared by all callers and never banned.
//
// A ban is twice as long as the last one if it follows within the last one's length. Each further such
// time undoes one doubling.
//
// [algo.MaxKeys] bounds the memory, separately for recently denied keys and for keys with a current or
// remembered ban. A full table evicts the count or the ban that would expire first.
//
// Do not use it over a limit that well-behaved callers often reach, nor where many callers share a
// key, such as one address.
type Ban struct {
	limiter  algo.Limiter
	duration banDuration
	counter  denialCounter
	bans     keystore.Store[int64, struct{}]
	denials  keystore.Store[int64, struct{}]
}

// NewBan wraps l. denials is the number of denials that causes a ban, and their period, for example
// PerMinute(10): 1 to 1048575 in 1 ms to 365 days. The first ban lasts first, later ones at most
// longest, up to 90 days. The options are [algo.MaxKeys] and [algo.Clock], of the bans: l has its
// own. The error names the field and its value. It panics if l is nil.
func NewBan(l algo.Limiter, denials algo.Rate, first, longest time.Duration, opts ...algo.Option) (*Ban, error) {
	if l == nil {
		panic("guard: NewBan: the limiter is nil")
	}
	room, err := tables(opts)
	if err == nil {
		err = decide.CheckBan(denials.Count, denials.Period, first, longest)
	}
	if err != nil {
		return nil, fmt.Errorf("guard: ban: %w", err)
	}
	b := &Ban{limiter: l, duration: newBanDuration(first, longest), counter: newDenialCounter(denials)}
	b.bans.Init(room, nil)
	b.denials.Init(room, nil)
	return b, nil
}

// tables returns the configuration of the tables of keys. A full table evicts, because keys that
// shared a word would be banned for each other.
func tables(opts []algo.Option) (keystore.Config, error) {
	for _, o := range opts {
		if o.String() != "MaxKeys" && o.String() != "Clock" {
			return keystore.Config{}, fmt.Errorf("does not take the option %s, only MaxKeys and Clock", o)
		}
	}
	s, err := algo.Spec{Rate: algo.PerSecond(1)}.With(opts...)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "algo: token bucket: "))
	}
	return keystore.Config{MaxKeys: int(cmp.Or(s.MaxKeys, 1<<20)), Evict: true, Now: s.Clock()}, err
}

// Unwrap returns the limiter.
func (b *Ban) Unwrap() []algo.Limiter { return []algo.Limiter{b.limiter} }

// Acquire denies a banned key. For other keys it forwards to the limiter and
// counts its denials.
func (b *Ban) Acquire(ctx context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	if left := b.Banned(key); left > 0 {
		lease.Decision = b.denial(left)
		return lease, nil
	}
	if lease, err = b.limiter.Acquire(ctx, key, n); err == nil && !algo.IsTentative(ctx) {
		b.count(&lease.Decision, key)
	}
	return lease, err
}

// Peek returns the answer of Acquire, and counts nothing: before the denial that causes a ban it is
// the limiter's.
func (b *Ban) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	if left := b.Banned(key); left > 0 && n >= 0 {
		return b.denial(left), nil
	}
	return algo.Peek(ctx, b.limiter, key, n)
}

// denial returns the decision for a key whose ban lasts for left.
func (b *Ban) denial(left time.Duration) algo.Decision {
	return algo.Decision{Reason: algo.Banned, Limit: algo.About(b.limiter).Quota, RetryAfter: left, NextAfter: left, ResetAfter: left}
}

// count counts a denial. It turns the denial that causes a ban into a ban.
func (b *Ban) count(d *algo.Decision, key string) {
	if d.Allowed || d.Reason != algo.Quota || key == "" || !b.completes(key) {
		return
	}
	if left := b.ban(key); left > d.RetryAfter {
		*d = b.denial(left)
	}
}

// completes counts a denial of key and reports whether it causes a ban.
func (b *Ban) completes(key string) (complete bool) {
	b.denials.Update(key, keystore.Fresh, func(s keystore.State[int64], now int64) (next, _ int64, ok bool) {
		next, complete = b.counter.add(s.State, now)
		return next, 0, true
	})
	return complete
}

// ban bans key for longer than last time, unless it is already banned, and returns the ban's
// length.
func (b *Ban) ban(key string) time.Duration {
	var until int64
	now, _ := b.bans.Update(key, keystore.Fresh, func(s keystore.State[int64], now int64) (next, _ int64, ok bool) {
		if _, until = b.duration.read(s.State, now); until > now {
			return s.State, 0, false
		}
		next, until = b.duration.ban(s.State, now)
		return next, 0, true
	})
	return keystore.ToDuration(until - now)
}

// Banned returns how much longer key is banned; 0 if it is not.
func (b *Ban) Banned(key string) time.Duration {
	if key == "" || b.bans.Empty() {
		return 0
	}
	word := b.bans.Load(key)
	if word == 0 {
		return 0 // most keys, without reading the clock
	}
	now := b.bans.Clock.Now()
	if _, until := b.duration.read(word, now); until > now {
		return keystore.ToDuration(until - now)
	}
	return 0
}

// Reset lifts the ban of key and forgets its denials and earlier bans.
func (b *Ban) Reset(key string) {
	forget := func(s keystore.State[int64], _ int64) (next, _ int64, ok bool) { return 0, 0, s.State != 0 }
	b.bans.Update(key, keystore.Fresh, forget)
	b.denials.Update(key, keystore.Fresh, forget)
}

// Len counts the keys with a current or remembered ban. It walks the table.
func (b *Ban) Len() int {
	now := b.bans.Clock.Now()
	return b.bans.Len(func(uint64) int64 { return now })
}

// Overflowed returns the number of counts and bans that a full table evicted.
func (b *Ban) Overflowed() uint64 { return b.bans.Overflowed() + b.denials.Overflowed() }
