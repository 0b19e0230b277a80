package algo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/interleave"
)

// sized is a bucket whose burst the user chooses.
type sized struct{ bucket }

// SetBurst changes the burst while the limiter runs. What keys owe stays owed,
// as time.
func (b *sized) SetBurst(n int64) error {
	return b.set(func(s Spec, _ Rate) (Spec, Rate, error) {
		s.write(Burst(n))
		return s, s.Rate, nil
	})
}

// bucket applies a gcra to the words of a limiter: everything that token
// buckets, leaky buckets and pacers share.
type bucket struct {
	kind    *kind
	words   words
	limit   atomic.Pointer[gcra]
	setting sync.Mutex // serialises changes of the limit
	spec    Spec
	burstAt Rate // the rate when the burst was set
	params  bucketParams
}

// bucketParams turns a Spec into parameters. burstAt is the rate at which the
// burst was set.
type bucketParams func(s Spec, burstAt Rate) (*gcra, error)

// tokens makes the parameters of a token bucket, and of every bucket that
// denies or delays what does not fit.
func tokens(s Spec, _ Rate) (*gcra, error) {
	burst := s.Burst
	if !s.Given("burst") {
		burst = s.Rate.Count
	}
	return newGCRA(s.Rate, burst, s.MaxWait)
}

// init makes b ready. It is not a constructor because b must not move.
func (b *bucket) init(k *kind, s Spec, params bucketParams) error {
	b.kind, b.params = k, params
	b.words.clock = startClock()
	b.words.maxKeys, b.words.onFull = s.maxKeys(), s.OnFull
	return b.set(func(Spec, Rate) (Spec, Rate, error) { return s, s.Rate, nil })
}

// set changes the limit. It costs the same for one key and for millions: debt
// is time, so it stands as it is, and what a key owes beyond the new limit's
// ceiling is cut when the key is next touched.
func (b *bucket) set(change func(s Spec, burstAt Rate) (Spec, Rate, error)) error {
	b.setting.Lock()
	defer b.setting.Unlock()
	s, burstAt, err := change(b.spec, b.burstAt)
	if err != nil {
		return err
	}
	g, err := b.params(s, burstAt)
	if err != nil {
		return fmt.Errorf("algo: %s: %w", b.kind.title, err)
	}
	b.spec, b.burstAt = s, burstAt
	b.limit.Store(g)
	return nil
}

// SetRate changes the rate while the limiter runs. What keys owe stays owed,
// as time. A burst that was not set follows the new rate's count.
func (b *bucket) SetRate(r Rate) error {
	return b.set(func(s Spec, burstAt Rate) (Spec, Rate, error) {
		s.Rate = r
		return s, burstAt, nil
	})
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (b *bucket) SetSpec(s Spec) error {
	return b.set(func(was Spec, _ Rate) (Spec, Rate, error) {
		next, err := was.replace(b.kind, s)
		return next, s.Rate, err
	})
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (b *bucket) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	b.acquireAt(&lease, b.words.clock.now(), key, n)
	return lease, nil
}

// Allow is the short form of Acquire for callers that want only the verdict.
// It does not admit with a delay: what does not fit now is denied. A negative
// n is denied.
func (b *bucket) Allow(key string, n int64) bool {
	return n >= 0 && b.allowAt(b.words.clock.now(), key, n)
}

// acquireAt writes to lease in place: it is large, and copying it would cost
// more than deciding.
func (b *bucket) acquireAt(lease *Lease, now int64, key string, n int64) {
	g, now, next, over, mark, full := b.spend(key, now, n, math.MaxInt64)
	if full {
		lease.Decision = b.whenFull(g, now, key)
		return
	}
	g.explain(&lease.Decision, next, now, n, over)
	if !lease.Allowed || n == 0 {
		return
	}
	lease.releaser = b
	lease.handle.Key, lease.handle.N = key, n
	lease.handle.At = min(now+max(over, 0), next-n*g.emission)
	lease.handle.State = [3]int64{next, mark, g.emission}
}

func (b *bucket) allowAt(now int64, key string, n int64) bool {
	_, _, _, over, _, full := b.spend(key, now, n, 0)
	if full {
		return b.words.onFull == AllowNew
	}
	return over <= 0 || n == 0
}

// spend charges n to key, unless it would be delayed by more than patience.
// It returns the limit and the instant that it decided on, the TAT afterwards,
// the overshoot as gcra.charge has it, the account of refunds before the
// charge, and whether the key is new and found no room. (Not as a struct: more
// than four fields do not stay in registers.)
func (b *bucket) spend(key string, at, n, patience int64) (g *gcra, now, next, over, mark int64, noRoom bool) {
	now = at
	c := b.words.cell(key)
	for {
		g = b.limit.Load()
		mark = c.stripe.done.Load()
		tat := c.at.word.Load()
		if tat == retired || c.at.id.Load() != c.id {
			if c, tat = c.reload(); c.absent() {
				now = b.words.clock.now()
			}
		}
		if !g.believable(tat, now) {
			now = b.heal(c, g, tat)
			continue
		}
		next, over = g.charge(tat, now, n)
		if next == tat || (over > patience && over <= g.wait) {
			return g, now, tat, over, mark, false
		}
		interleave.Point()
		if s := c.swap(tat, next, now); s != lost {
			return g, now, next, over, mark, s == full
		}
	}
}

// heal deals with a TAT that g cannot have written by the time that its caller
// read from the clock, and returns a new reading. Either the old reading was
// late, or the limit was changed meanwhile: then there is nothing to heal.
// What cannot stem from a reading taken after the TAT was seen is left over
// from a slower limit, and is cut.
func (b *bucket) heal(c cell, g *gcra, tat int64) (now int64) {
	unchanged := b.limit.Load() == g
	now = b.words.clock.now()
	if unchanged && !g.believable(tat, now) {
		c.stripe.forgive()
		c.swap(tat, g.heal(tat, now), now)
	}
	return now
}

// whenFull answers a new key that found no room and must not share.
func (b *bucket) whenFull(g *gcra, now int64, key string) Decision {
	t := b.words.keys.Load()
	return crowded(b.words.onFull, g.burst, max(t.soonest(t.hash(key))-now, 0)+1)
}

// Release gives back what a canceled admission still weighs. Any other outcome
// changes nothing: spent is spent. It implements [Releaser]; callers use
// [Lease.Release].
func (b *bucket) Release(h Handle, o Outcome) {
	if o == Canceled {
		b.giveBack(h, h.N)
	}
}

// Settle corrects the cost of an admission. It implements [Releaser]; callers
// use [Lease.Settle].
func (b *bucket) Settle(h Handle, actual int64) {
	if actual <= h.N {
		b.giveBack(h, h.N-actual)
		return
	}
	b.owe(b.words.cell(h.Key), actual-h.N, h.State[2])
}

// giveBack refunds n units of an admission, at most what it still weighs.
func (b *bucket) giveBack(h Handle, n int64) {
	ch := charge{start: h.At, tat: h.State[0], mark: h.State[1]}
	emission := h.State[2]
	units := b.limit.Load().ceiling / emission // no debt is larger
	cost, most := min(h.N, units)*emission, min(n, units)*emission
	c := b.words.cell(h.Key)
	b.refund(c, most, func(shift, now int64) int64 {
		if c.stripe.forgave(ch.mark) {
			return 0
		}
		return ch.weighs(cost, shift-ch.mark, now)
	})
}

// Reset forgives key what it owes. What was admitted before cannot be given
// back any more, and neither what was admitted to a few other keys.
func (b *bucket) Reset(key string) {
	c, tat := b.words.cell(key).load()
	most := debt(tat, b.words.clock.now())
	c.stripe.forgive()
	b.refund(c, most, func(_, _ int64) int64 { return most })
	c.stripe.forgive()
}

// refund lowers the word of c by what weighs returns, at most by most, and
// keeps the account of it.
func (b *bucket) refund(c cell, most int64, weighs func(shift, now int64) int64) {
	account := &c.stripe.refunds
	account.begun.Add(most)
	given := b.lower(c, func(now int64) int64 {
		return min(most, weighs(account.begun.Load()-most, now))
	})
	account.forget(account.done.Add(given) - mostRefunded)
	account.begun.Add(given - most)
}

// lower takes by(now) ticks off the word of c, but never below now, and
// returns how many it took. The clock is read after the word: a refund that
// was computed on an older reading would give back what has drained meanwhile.
func (b *bucket) lower(c cell, by func(now int64) int64) int64 {
	for {
		var tat int64
		c, tat = c.load()
		now := b.words.clock.now()
		given := min(by(now), tat-now)
		if given <= 0 {
			return 0
		}
		interleave.Point()
		switch c.swap(tat, tat-given, now) {
		case done:
			return given
		case full: // a new key: what it owes is what every new key begins with
			return 0
		}
	}
}

// owe charges n units whether they fit or not, up to the ceiling. What is cut
// there was not charged, so nothing charged before can be given back any more:
// it could be more than was charged. The same goes for units that are charged
// for less than refund ticks, for which the admission's would be given back.
func (b *bucket) owe(c cell, n, refund int64) {
	for {
		g := b.limit.Load()
		var tat int64
		c, tat = c.load()
		now := b.words.clock.now()
		debt := debt(tat, now)
		room := max(g.ceiling-debt, 0)
		extra := room
		if n <= room/g.emission {
			extra = n * g.emission
		}
		if n > room/g.emission || g.emission < refund {
			c.stripe.forgive()
		}
		if extra == 0 {
			return
		}
		interleave.Point()
		if c.swap(tat, addSaturated(now, debt+extra), now) != lost {
			return
		}
	}
}

// Len counts the keys that owe something at the moment. It walks the table.
func (b *bucket) Len() int { return b.words.live(b.words.clock.now()) }

// Overflowed counts the charges that found no room for a new key of their own.
// It growing means that MaxKeys is too small, or that somebody makes keys up.
func (b *bucket) Overflowed() uint64 { return b.words.spilled() }

// Describe says what callers are promised: the burst, in the time that the
// bucket takes to fill.
func (b *bucket) Describe() (Description, bool) {
	g := b.limit.Load()
	return Description{Quota: g.burst, Window: g.window}, true
}
