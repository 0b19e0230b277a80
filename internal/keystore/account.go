package keystore

import "sync/atomic"

// account counts the ticks refunded to one word, or to the words of one
// stripe. It bounds how far a charge may have moved towards the present since
// it was made, because others were refunded.
//
// begun grows before a word is lowered and done after, so begun now less done
// at the time of the charge covers every refund in between, in whatever order
// the processors ran. It also covers the refunds of other keys in the stripe,
// which errs on the safe side.
//
// A charge is identified by its mark: the value of done before the charge.
// Charges with a mark below invalid can no longer be refunded. invalid is the
// value of done at the last invalidation, or maxRefunded behind done. It also
// invalidates charges of other keys in the stripe, which errs on the safe side.
type account struct {
	begun   atomic.Int64
	done    atomic.Int64
	invalid atomic.Int64
}

// maxRefunded is how many ticks of refunds a charge outlives. The counts wrap
// around; those in use must lie within half of the range of an int64, or their
// order would be lost.
const maxRefunded = 1 << 61

// invalidate ends the refunds of earlier charges.
func (a *account) invalidate() {
	a.begun.Add(1)
	a.invalidateBefore(a.done.Add(1))
}

// invalidateBefore ends the refunds of the charges made before done was mark.
func (a *account) invalidateBefore(mark int64) {
	for {
		if was := a.invalid.Load(); was-mark >= 0 || a.invalid.CompareAndSwap(was, mark) {
			return
		}
	}
}

// valid reports whether the charge with this mark can still be refunded.
func (a *account) valid(mark int64) bool { return mark-a.invalid.Load() >= 0 }

// begin reserves most ticks for a refund.
func (a *account) begin(most int64) { a.begun.Add(most) }

// shift is how many ticks were refunded since mark, without the caller's own
// reservation.
func (a *account) shift(mark, own int64) int64 { return a.begun.Load() - own - mark }

// end replaces a reservation by the ticks that were refunded.
func (a *account) end(most, refunded int64) {
	a.invalidateBefore(a.done.Add(refunded) - maxRefunded)
	a.begun.Add(refunded - most)
}
