package algo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/warning"
)

// RateLimiter is a limit over time for any number of keys, in this process. Its constructor selects
// the algorithm and documents its bound: [NewTokenBucket] is the default choice, and [Spec.New]
// makes any.
//
// A decision allocates nothing, except where the table of keys or a sliding log grows, and never
// waits. A method that the algorithm lacks returns [errors.ErrUnsupported]. It is safe for
// concurrent use.
type RateLimiter struct {
	words       words         // the keys of an algorithm of one word, in line
	values      engine.Engine // the keys of any other algorithm, or nil
	corrections corrections   // with the engine of both

	kind     *kind // nil: the limit cannot be changed
	changing sync.Mutex
	setting  atomic.Pointer[setting]
}

// Packages with other engines make their RateLimiter through these functions.
func init() {
	engine.Limiter = func(e engine.Engine) any { return &RateLimiter{values: e, corrections: corrections{e}} }
	warning.NameLimiter = func(limiter any, policy string) {
		if l, ok := limiter.(interface{ setName(name string) }); ok {
			l.setName(policy)
		}
	}
}

func (l *RateLimiter) setName(name string) {
	if l.misuse(0) == nil {
		l.engine().SetName(name)
	}
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (l *RateLimiter) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	err = l.acquireAt(&lease, nil, key, n)
	return lease, err
}

// acquireAt is Acquire at a reading that several limiters share; nil: at a new one. It fills lease
// in place, because copying 128 bytes costs as much as deciding (BenchmarkTokenBucket).
func (l *RateLimiter) acquireAt(lease *Lease, reading *keystore.Reading, key string, n int64) error {
	switch {
	case n < 0 || l.values == nil && l.words.Store() == nil:
		return l.misuse(n)
	case l.values == nil:
		l.acquireWord(lease, reading, key, n)
	default:
		l.acquireValue(lease, reading, key, n)
	}
	if lease.Allowed {
		lease.handle.Key, lease.handle.N = key, n
		lease.releaser = &l.corrections
	}
	return nil
}

// acquireWord is Acquire for one word a key.
func (l *RateLimiter) acquireWord(lease *Lease, reading *keystore.Reading, key string, n int64) {
	k := &l.words
	now, r := k.Store().Update(key, reading.OrNow(k.Clock()), func(s keystore.State[int64], now int64) (int64, int64, bool) {
		l := k.InUse()
		at := l.At(s.ID, now)
		next, a, q := l.Answer(s.State, at, n)
		if a.Allowed && n > 0 || l.Plausible(s.State, at) {
			lease.setAnswer(a, q)
			if a.Allowed {
				lease.handle.setCharge(l.Charge(next, at, n, a.Delay), s.Mark)
			}
			return next, 0, a.Allowed && n > 0
		}
		state, now, changed := k.Repaired(l, s, now)
		next, a, q = l.Answer(state, now, n)
		lease.setAnswer(a, q)
		if a.Allowed {
			lease.handle.setCharge(l.Charge(next, now, n, a.Delay), s.Mark)
			changed = changed || n > 0
		}
		return l.Written(next, now, changed)
	})
	if k.Refused(key, now, n, r) {
		lease.setFull(k.NoRoom(key, now))
	}
}

// acquireValue is Acquire for any other engine. Through an interface lease would escape, so the
// engine writes to a pooled answer; returning a value would take 20 ns more.
func (l *RateLimiter) acquireValue(lease *Lease, reading *keystore.Reading, key string, n int64) {
	at := int64(keystore.Now)
	if reading != nil {
		at = reading.Of(l.values.Clock())
	}
	d := decided.Get().(*engine.Decided)
	l.values.Acquire(d, key, at, n)
	lease.setAnswer(d.Answer, d.Quota)
	if d.Full {
		lease.setFull(d.Answer, d.Quota)
	}
	if d.Allowed {
		lease.handle.setCharge(d.Charge.Charge, d.Charge.Mark)
	}
	decided.Put(d)
}

var decided = sync.Pool{New: func() any { return new(engine.Decided) }}

// misuse returns ErrCost for a negative n, ErrLiteral for a RateLimiter that no constructor made.
func (l *RateLimiter) misuse(n int64) error {
	switch {
	case l.values == nil && l.words.Store() == nil:
		return engine.ErrLiteral
	case n < 0:
		return costError(n)
	}
	return nil
}

// Allow is the short form of Acquire for callers that need only Allowed. It denies units that would
// need a Delay, and a negative n.
func (l *RateLimiter) Allow(key string, n int64) bool {
	if l.values != nil {
		return l.values.Allow(key, n)
	}
	return l.words.Allow(key, n)
}

// Peek returns the answer of Acquire, and charges nothing; see [Peeker].
func (l *RateLimiter) Peek(_ context.Context, key string, n int64) (d Decision, err error) {
	if err := l.misuse(n); err != nil {
		return d, err
	}
	a, q, full := l.engine().Peek(key, n)
	if full {
		d.setFull(a, q)
	} else {
		d.setAnswer(a, q)
	}
	return d, nil
}

// engine returns the engine, for calls that can afford an indirect call.
func (l *RateLimiter) engine() engine.Engine { return l.corrections.engine }

// setCharge stores the identity of a charge in h.
func (h *Handle) setCharge(c decide.Charge, mark int64) {
	h.At, h.State[0], h.State[1], h.State[2] = c.At, c.A, c.B, mark
}

// charge returns the charge that setCharge stored.
func (h *Handle) charge() engine.Charge {
	return engine.Charge{Charge: decide.Charge{N: h.N, At: h.At, A: h.State[0], B: h.State[1]}, Mark: h.State[2]}
}

// setAnswer sets d from a and q.
func (d *Decision) setAnswer(a decide.Answer, q decide.Quota) {
	d.Allowed, d.Reason = a.Allowed, Admitted
	d.Delay, d.RetryAfter = keystore.ToDuration(a.Delay), keystore.ToDuration(a.RetryAfter)
	if a.Never {
		d.Reason, d.RetryAfter = Never, Forever
	} else if !a.Allowed {
		d.Reason = Quota
	}
	d.Limit, d.Remaining = q.Limit, q.Remaining
	d.NextAfter, d.ResetAfter = keystore.ToDuration(q.NextAfter), keystore.ToDuration(q.ResetAfter)
}

// setFull sets the answer for a new key that found the table full.
func (d *Decision) setFull(a decide.Answer, q decide.Quota) {
	d.setAnswer(a, q)
	d.Reason, d.Cause = Overload, cause.Keys
}

// Refund gives back up to n spent units of key that still weigh, for work whose lease is gone: a
// failed request of yesterday's batch, or a customer in need. It returns the refunded units, by
// which Remaining has grown; units that have already come back are not refunded. Afterwards up to n
// units more than the bound are admitted. Requests that wait keep their start times. A fixed window
// refunds the current window, its debt first.
//
// If there is a lease, use [Lease.Release] or [Lease.Settle] instead: units refunded twice are
// admitted twice. The error is [ErrCost] for a negative n. Sliding windows and logs, warm-ups,
// markers and shares do not support it.
func (l *RateLimiter) Refund(key string, n int64) (units int64, err error) {
	if l.values != nil {
		return 0, l.unsupported("Refund")
	}
	if err := l.misuse(n); err != nil {
		return 0, err
	}
	return l.words.Refund(key, n), nil
}

// Reset gives key a fresh limit. Earlier admissions can no longer be refunded. It does nothing for
// a key without debt.
func (l *RateLimiter) Reset(key string) { l.engine().Reset(key) }

// Stats describes the table of keys of a [RateLimiter].
type Stats struct {
	// Live counts the keys with spent units that still weigh.
	Live int
	// Room is the capacity set by [MaxKeys]. More keys may find room, so Live may be larger.
	Room int
	// Overflowed counts charges to new keys that found the table full and replaced another key or were
	// denied. If it grows, MaxKeys is too small or a client invents keys; once a minute a log line
	// with the code algo.full says so.
	Overflowed uint64
}

// Stats returns the current numbers. It walks the table to count the live keys.
func (l *RateLimiter) Stats() Stats {
	if l.misuse(0) != nil {
		return Stats{}
	}
	e := l.engine()
	return Stats{e.Live(), e.Room(), e.Overflowed()}
}

// About returns the rate (none for a marker or a share), the most units that fit at once, and the
// time in which they come back.
func (l *RateLimiter) About() (d Description) {
	if l.misuse(0) != nil {
		return d
	}
	quota, window := l.engine().Limit()
	if window == 0 {
		return d
	}
	if in := l.setting.Load(); in != nil {
		d.Rate = in.rate
	}
	d.Quota, d.Window = quota, window
	return d
}

// unsupported returns the error of a method that the algorithm lacks.
func (l *RateLimiter) unsupported(method string) error {
	title := "limiter"
	if l.kind != nil {
		title = l.kind.title
	}
	return fmt.Errorf("algo: %s: %s: %w", title, method, errors.ErrUnsupported)
}
