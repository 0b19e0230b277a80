package algo

import "sync/atomic"

// refunds counts the ticks given back to one word, or to the words of one
// stripe. It answers one question: how far may a charge have moved towards the
// present since it was made, because others were given back?
//
// begun grows before a word is lowered and done after, so begun now less done
// at the time of the charge covers every refund in between, in whatever order
// the processors ran. Refunds of other keys in the stripe are covered too; the
// answer errs to the safe side only.
//
// forgiven is what done was at the last Reset, or mostRefunded behind it: what
// was charged before cannot be given back, whatever has been charged since.
// What was charged under other keys of the stripe cannot be given back either;
// that is the safe side, too.
type refunds struct {
	begun    atomic.Int64
	done     atomic.Int64
	forgiven atomic.Int64
	reset    atomic.Int64 // the instant of the last void
}

// mostRefunded is how many ticks of refunds a charge outlives. The counts wrap
// around: those in use must lie within half of their range, to tell which is
// the earlier.
const mostRefunded = 1 << 61

// forgive ends what earlier charges weigh: at a reset, and where a debt is cut
// off at the ceiling. A reset calls it before it lowers
// the word and again after, so that neither the charges that it forgives nor
// those that came meanwhile can be given back.
func (r *refunds) forgive() {
	r.begun.Add(1)
	r.forget(r.done.Add(1))
}

// forget forgives the charges that were made before done was mark.
func (r *refunds) forget(mark int64) {
	for {
		if was := r.forgiven.Load(); was-mark >= 0 || r.forgiven.CompareAndSwap(was, mark) {
			return
		}
	}
}

// forgave reports whether a charge that found done at mark was forgiven.
func (r *refunds) forgave(mark int64) bool { return mark-r.forgiven.Load() < 0 }

// void is forgive for limiters that never delay, and so know a charge by its
// instant: what was charged up to now cannot be given back any more.
func (r *refunds) void(now int64) {
	for {
		if was := r.reset.Load(); was >= now || r.reset.CompareAndSwap(was, now) {
			return
		}
	}
}

// voided reports whether a charge made at at can no longer be given back.
func (r *refunds) voided(at int64) bool {
	reset := r.reset.Load()
	return reset > 0 && at <= reset
}

// charge is what a lease remembers of an admission.
type charge struct {
	start int64 // when the admitted work was due to start, or, if it comes sooner, to drain
	tat   int64 // the word after the charge
	mark  int64 // refunds.done before the charge
}

// weighs returns what is left at now of a charge of cost ticks. It drains last
// of all that was charged up to its tat, less what others were given back; and
// it counts as whole until its own start. The larger of the two makes the order
// in which waits are canceled not matter.
//
// Giving back the whole cost instead, however late, mints: the bucket has
// refilled meanwhile and the units would be spent twice.
func (c charge) weighs(cost, shift, now int64) int64 {
	left := max(c.tat-shift-now, cost-max(now-c.start, 0))
	return min(max(left, 0), cost)
}
