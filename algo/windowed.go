package algo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/interleave"
)

// rules is an algorithm with immutable parameters over a state S, as windowed
// applies it: a window over the recent past in which units weigh until they
// have passed. Instants and spans are ticks.
type rules[S any] interface {
	// adopt makes s a state under these parameters, if it is one under others,
	// and reports whether it was. It reads the clock then: an older reading may
	// lie before what weighs was charged.
	adopt(s *S, c clock) bool
	// latest is the latest instant that s knows of. Deciding at an earlier one
	// would give back what that instant proves not to have passed.
	latest(s *S) int64
	// used is how many units weigh at now.
	used(s *S, now int64) int64
	// add charges n units at now, whether they fit or not.
	add(s *S, now, n int64)
	// remove gives back up to n units charged at at.
	remove(s *S, at, n int64)
	// together reports whether charges at a and b are given back as one.
	together(a, b int64) bool
	// after is the time from now until no more than most units weigh.
	after(s *S, now, most int64) int64
	// owed is how many of n units to charge at now that may not fit, and whether
	// that cuts anything off, of these units or of others.
	owed(s *S, now, n int64) (charge int64, cut bool)
	// most is the quota.
	most() int64
	// window is the length of the window.
	window() int64
}

// windowed applies rules to the cells of a limiter: everything that sliding
// windows share.
type windowed[S, R any, P interface {
	*R
	rules[S]
}] struct {
	kind    *kind
	cells   cells[S]
	limit   atomic.Pointer[R]
	setting sync.Mutex // serialises changes of the limit
	spec    Spec
	since   atomic.Int64 // when the period was changed
	params  func(Spec) (*R, error)
}

// init makes w ready. It is not a constructor because w must not move.
func (w *windowed[S, R, P]) init(k *kind, s Spec, params func(Spec) (*R, error)) error {
	w.kind, w.params, w.spec = k, params, s
	w.cells.init(s)
	return w.SetRate(s.Rate)
}

// SetRate changes quota and period while the limiter runs. What a key has
// spent stays spent, in units; when the period changes, what still weighs
// weighs as if it had been spent now.
func (w *windowed[S, R, P]) SetRate(r Rate) error {
	return w.set(func(s Spec) (Spec, error) { s.Rate = r; return s, nil })
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (w *windowed[S, R, P]) SetSpec(s Spec) error {
	return w.set(func(was Spec) (Spec, error) { return was.replace(w.kind, s) })
}

func (w *windowed[S, R, P]) set(change func(Spec) (Spec, error)) error {
	w.setting.Lock()
	defer w.setting.Unlock()
	s, err := change(w.spec)
	if err != nil {
		return err
	}
	limit, err := w.params(s)
	if err != nil {
		return fmt.Errorf("algo: %s: %w", w.kind.title, err)
	}
	w.spec = s
	was := w.limit.Load()
	if was == nil || P(was).window() == P(limit).window() {
		w.limit.Store(limit)
		return nil
	}
	w.since.Store(math.MaxInt64) // until it is known when
	w.limit.Store(limit)
	interleave.Point()
	// After the change: what was charged at a later instant was charged under
	// the new period.
	w.since.Store(w.cells.clock.now())
	return nil
}

// Acquire charges n units to key if they fit; see [Limiter]. It ignores ctx,
// because it never waits. A negative n is [ErrCost].
func (w *windowed[S, R, P]) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	w.acquireAt(&lease, w.cells.clock.now(), key, n)
	return lease, nil
}

// Allow is the short form of Acquire for callers that want only the verdict. A
// negative n is denied.
func (w *windowed[S, R, P]) Allow(key string, n int64) bool {
	return n >= 0 && w.allowAt(w.cells.clock.now(), key, n)
}

func (w *windowed[S, R, P]) allowAt(now int64, key string, n int64) bool {
	h, now := w.cells.lock(key, now)
	if h.value == nil {
		return w.cells.onFull == AllowNew
	}
	p := P(w.limit.Load())
	changed := p.adopt(h.value, w.cells.clock)
	now = max(now, p.latest(h.value))
	fits := n <= p.most()-p.used(h.value, now)
	if fits && n > 0 {
		p.add(h.value, now, n)
		changed = true
	}
	w.finish(h, p, now, changed)
	return fits || n == 0
}

// finish gives the cell free, with a new expiry if its state has changed.
func (w *windowed[S, R, P]) finish(h held[S], p P, now int64, changed bool) {
	if !changed {
		h.leave()
		return
	}
	h.unlock(now + p.after(h.value, now, 0))
}

func (w *windowed[S, R, P]) acquireAt(lease *Lease, asked int64, key string, n int64) {
	h, asked := w.cells.lock(key, asked)
	p := P(w.limit.Load())
	if h.value == nil {
		lease.Decision = w.whenFull(p, asked, key)
		return
	}
	changed := p.adopt(h.value, w.cells.clock)
	now := max(asked, p.latest(h.value))
	if !decideWindow[S](p, h.value, &lease.Decision, asked, now, n) || n == 0 {
		w.finish(h, p, now, changed)
		return
	}
	h.unlock(asked + toTicks(lease.ResetAfter))
	lease.releaser = w
	lease.handle.Key, lease.handle.N = key, n
	lease.handle.At, lease.handle.State[0] = now, n
}

// decideWindow is the algorithm: what becomes of s when n units are asked for.
// asked is the caller's reading of the clock and now the instant to decide at,
// later if s knows of a later one. It works under the cell's lock, and is the
// model that linearizability is checked against.
func decideWindow[S any](p rules[S], s *S, d *Decision, asked, now, n int64) bool {
	quota := p.most()
	used := p.used(s, now)
	d.Limit = quota
	d.Allowed = n <= quota-used || n == 0
	if d.Allowed && n > 0 {
		p.add(s, now, n)
		used += n
	}
	late := now - asked
	d.Remaining = max(quota-used, 0)
	if used > 0 {
		d.ResetAfter = toDuration(late + p.after(s, now, 0))
		d.NextAfter = toDuration(late + p.after(s, now, quota-d.Remaining-1))
	}
	switch {
	case d.Allowed:
	case n > quota:
		d.Reason, d.RetryAfter = Never, Forever
	default:
		d.Reason, d.RetryAfter = Quota, toDuration(late+p.after(s, now, quota-n))
	}
	return d.Allowed
}

// whenFull answers a new key that found no room and must not share.
func (w *windowed[S, R, P]) whenFull(p P, now int64, key string) Decision {
	return crowded(w.cells.onFull, p.most(), w.cells.soonest(key, now))
}

// Release gives a canceled admission back as far as it still weighs. Any other
// outcome changes nothing: spent is spent. It implements [Releaser]; callers
// use [Lease.Release].
func (w *windowed[S, R, P]) Release(h Handle, o Outcome) {
	if o == Canceled {
		w.giveBack(h, 0)
	}
}

// Settle corrects the cost of an admission. Less gives the difference back as
// far as it still weighs; more is charged now, whether it fits or not, up to a
// whole quota beyond the limit. What a correction added is given back by a
// later one only if it stands where the admission stands. It implements
// [Releaser]; callers use [Lease.Settle].
func (w *windowed[S, R, P]) Settle(h Handle, actual int64) {
	if actual <= h.N {
		w.giveBack(h, actual)
		return
	}
	w.owe(h.Key, actual-h.N)
}

// giveBack leaves keep units of an admission. What was admitted at its instant
// is taken from that instant's count. Taking it anywhere else, or after it has
// passed, would give back what others spent.
func (w *windowed[S, R, P]) giveBack(lease Handle, keep int64) {
	h, now := w.cells.lock(lease.Key, w.cells.clock.now())
	if h.value == nil {
		return
	}
	p := P(w.limit.Load())
	changed := p.adopt(h.value, w.cells.clock)
	now = max(now, p.latest(h.value))
	n, first := lease.N, lease.State[0]
	if !p.together(lease.At, now) {
		n, keep = min(n, first), min(keep, first)
	}
	void := lease.At <= w.since.Load() || w.cells.stripe(lease.Key).voided(lease.At)
	if n > keep && !void {
		p.remove(h.value, lease.At, n-keep)
		changed = true
	}
	w.finish(h, p, now, changed)
}

// owe charges n units whether they fit or not. When some are cut off nothing
// that was charged before can be given back any more, because it could be more
// than is charged.
func (w *windowed[S, R, P]) owe(key string, n int64) {
	h, now := w.cells.lock(key, w.cells.clock.now())
	if h.value == nil {
		return
	}
	p := P(w.limit.Load())
	p.adopt(h.value, w.cells.clock)
	now = w.locked(h, p, now)
	n, cut := p.owed(h.value, now, n)
	if cut {
		w.cells.stripe(key).void(now)
	}
	if n > 0 {
		p.add(h.value, now, n)
	}
	w.finish(h, p, now, true)
}

// locked is an instant at or after all that h was charged at. The reading from
// before the lock may be older than what others charged while it was waited
// for.
func (w *windowed[S, R, P]) locked(h held[S], p P, now int64) int64 {
	return max(now, p.latest(h.value), w.cells.clock.now())
}

// Reset gives key a fresh quota. What was admitted before cannot be given back
// any more; neither can it, for a moment, under other keys.
func (w *windowed[S, R, P]) Reset(key string) {
	h, now := w.cells.lock(key, w.cells.clock.now())
	if h.value == nil {
		return
	}
	p := P(w.limit.Load())
	w.cells.stripe(key).void(w.locked(h, p, now))
	w.cells.bequeath(h.value, new(S))
	h.unlock(now)
}

// Len counts the keys of which something weighs at the moment. It walks the
// table.
func (w *windowed[S, R, P]) Len() int { return w.cells.live(w.cells.clock.now() + 1) }

// Overflowed counts the decisions on new keys that found the table full. It
// growing means that MaxKeys is too small, or that somebody makes keys up.
func (w *windowed[S, R, P]) Overflowed() uint64 { return w.cells.spilled() }

// Describe says what callers are promised: the quota in each period.
func (w *windowed[S, R, P]) Describe() (Description, bool) {
	p := P(w.limit.Load())
	return Description{Quota: p.most(), Window: toDuration(p.window())}, true
}
