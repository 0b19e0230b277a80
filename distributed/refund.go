package distributed

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Refund gives back to key, in all instances, up to n units that it has spent and that still
// weigh, also after a change of the limit. It returns by how many units Remaining has grown;
// units that have drained do not come back a second time. After it up to n units more than the
// bound may be admitted. Units of a block that an instance holds count as spent, and that
// instance may spend them nevertheless; see [WithBlocks].
//
// Refund takes a bucket, a pacer or a fixed window, calendars included; for other limits the
// error is [errors.ErrUnsupported]. It waits for Redis; Release and Settle of a lease do not.
// A repeated Refund refunds again; [Limiter.SettleReserved] refunds once.
//
// Other errors are [algo.ErrCost] for a negative n, [ErrClosed], and [ErrUnavailable], after
// which Redis may have refunded the units.
func (l *Limiter) Refund(ctx context.Context, key string, n int64) (units int64, err error) {
	lim, ok := l.load().(giver)
	if !ok {
		return 0, l.errorf("only buckets, pacers and fixed windows give back units without a lease: %w", errors.ErrUnsupported)
	}
	if n < 0 {
		return 0, l.errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	given, err := l.execute(ctx, key, lim.giveBackArgs(key, n))
	unit := lim.giveBackArgs(key, 1)[3] // in microseconds, or 1
	return (given + unit - 1) / unit, err
}

// UndoCharge refunds a charge whose caller has stopped waiting.
func (r *releaser) UndoCharge(late *remote.Request) {
	l := (*Limiter)(r)
	a, lim := late.Answer(0), late.Limit.(limit)
	if late.Err != nil {
		l.undoUnknown(late, lim)
		return
	}
	if a.Flag() == flagWrongType {
		return
	}
	if g, ok := lim.(leaser); ok {
		g.dropLease(l, late)
	}
	if d, h := lim.explain(a, late.N); d.Allowed && late.N > 0 {
		l.correct(late.Keys[0], lim, lim.refundArgs(h, h.N))
	}
}

// undoUnknown removes the units of a holder that may have been charged. Other limits could
// refund units that were not charged.
func (l *Limiter) undoUnknown(r *remote.Request, lim limit) {
	if _, ok := lim.(holder); ok && remote.Classify(r.Err) == remote.UnknownOutcome {
		l.correct(r.Keys[0], lim, removeUnits(unitsOf(r.Answer(0), r.N), r.N))
	}
}

// correct sends a correction to Redis and drops the proof of a denial, which it may
// invalidate.
func (l *Limiter) correct(redisKey string, lim limit, a remote.Args) {
	r := remote.NewRequest(lim.script(), redisKey, a)
	r.Name = l.name
	_, held := lim.(holder)
	r.Twice = held && a[0] == opRefund && a[3] == a[5] // all units of a charge
	l.store.remote.Send(r)
	l.store.denied.drop(redisKey)
}

// releaser keeps the methods for leases and late replies out of Limiter's public ones.
type releaser Limiter

// Release refunds a canceled admission, or frees the slots of units in flight.
func (r *releaser) Release(h algo.Handle, o algo.Outcome) {
	if r.slots != nil {
		r.slots.order.Lock()
		defer r.slots.order.Unlock()
		r.slots.remove(h)
	}
	if (o.Result() == algo.Canceled || r.slots != nil) && h.N > 0 {
		r.correctTo(h, 0)
	}
}

// Settle corrects the cost of an admission.
func (r *releaser) Settle(h algo.Handle, actual int64) {
	if r.slots != nil {
		r.slots.order.Lock()
		defer r.slots.order.Unlock()
		r.slots.settle(h, actual)
	}
	r.correctTo(h, actual)
}

func (r *releaser) correctTo(h algo.Handle, actual int64) {
	l := (*Limiter)(r)
	lim := l.load()
	switch {
	case actual > h.N:
		l.correct(l.redisKey(h.Key), lim, lim.forceArgs(h.Key, h, actual-h.N))
	case actual < h.N:
		l.correct(l.redisKey(h.Key), lim, lim.refundArgs(h, h.N-actual))
	}
}

// About describes the limit, so that a composition does not settle slots.
func (r *releaser) About() algo.Description { return (*Limiter)(r).About() }

// blockReleaser settles and releases the leases that were spent from a block.
type blockReleaser block

func (r *blockReleaser) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		r.Settle(h, 0)
	}
}

// Settle returns units to their block, or to the bucket if that block is gone,
// and charges missing units.
func (r *blockReleaser) Settle(h algo.Handle, actual int64) {
	k := (*block)(r)
	more := actual - h.N
	k.mu.Lock()
	defer k.mu.Unlock()
	current := !k.removed && k.charge.At == h.At && k.charge.State == h.State && time.Now().Before(k.ends)
	switch {
	case current && more < 0 && k.left-more <= k.charge.N:
		k.left -= more
	case current && more > 0 && more <= k.left:
		k.left -= more
	default:
		(*releaser)(k.of.limiter).correctTo(h, actual)
	}
}
