package keystore

import (
	"sync"
	"sync/atomic"
)

// accounts holds the accounts of a store: one for the empty key, and 256 stripes of the others,
// made 16 at a time at the first refund or invalidation in one of them.
type accounts struct {
	own     account
	stripes atomic.Pointer[[16]atomic.Pointer[[16]account]]
}

// untouched is the account of every stripe without refunds. It is never written.
var untouched account

// of returns the account of the key id, to read.
func (a *accounts) of(id uint64) *account {
	if id == 0 {
		return &a.own
	}
	if all := a.stripes.Load(); all != nil {
		if some := all[id%16].Load(); some != nil {
			return &some[id/16%16]
		}
	}
	return &untouched
}

// open returns the account of the key id, to write. Marks read from untouched stay valid.
func (a *accounts) open(id uint64) *account {
	if found := a.of(id); found != &untouched {
		return found
	}
	a.stripes.CompareAndSwap(nil, new([16]atomic.Pointer[[16]account]))
	a.stripes.Load()[id%16].CompareAndSwap(nil, new([16]account))
	return a.of(id)
}

// account counts the ticks refunded to one word, or to the words of one stripe. It bounds how far a
// charge may have moved towards the present since it was made, because others were refunded.
//
// begun grows before a word is lowered and done after, so begun now less done at the time of the
// charge covers every refund in between, in whatever order the processors ran. It also covers the
// refunds of other keys in the stripe, which errs on the safe side.
//
// A charge is identified by its mark: the value of done before the charge. After an invalidation of
// its key, charges with an earlier mark can no longer be refunded. recent has the keys of a stripe
// that were invalidated last; the oldest of many goes over to invalid, which concerns all keys of
// the stripe: charges with a mark below it can no longer be refunded either. The empty key has an
// account of its own, without recent.
type account struct {
	begun   atomic.Int64
	done    atomic.Int64
	invalid atomic.Int64
	recent  atomic.Pointer[recent]
}

// recent is made at the first invalidation.
type recent struct {
	mu   sync.Mutex
	next int
	keys [recentKeys]struct {
		id   atomic.Uint64
		mark atomic.Int64 // charges with a lower mark are invalid
	}
}

// recentKeys of 256 stripes: an invalidation concerns other keys only when about 4000
// keys have been invalidated after it, as during a flood of keys into a full table.
const recentKeys = 16

// maxRefunded is how many ticks of refunds a charge outlives. Counts wrap around: those in use must
// span less than half of an int64, to keep their order.
const maxRefunded = 1 << 61

// invalidate ends the refunds of earlier charges to the key id.
func (a *account) invalidate(id uint64) {
	if id == 0 {
		a.begun.Add(1)
		a.invalidateBefore(a.done.Add(1))
		return
	}
	if a.recent.Load() == nil {
		a.recent.CompareAndSwap(nil, new(recent))
	}
	r := a.recent.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	a.begun.Add(1)
	mark := a.done.Add(1)
	i := r.next
	for j := range r.keys {
		if r.keys[j].id.Load() == id {
			i = j
		}
	}
	key := &r.keys[i]
	if i == r.next {
		r.next = (i + 1) % recentKeys
		if key.id.Load() != 0 {
			a.invalidateBefore(key.mark.Load()) // first: readers look there last
		}
	}
	key.mark.Store(mark)
	key.id.Store(id)
}

// invalidateBefore ends the refunds of the charges made before done was mark, of all
// keys of the stripe.
func (a *account) invalidateBefore(mark int64) {
	for {
		if was := a.invalid.Load(); was-mark >= 0 || a.invalid.CompareAndSwap(was, mark) {
			return
		}
	}
}

// valid reports whether the charge to the key id with this mark can still be
// refunded.
func (a *account) valid(id uint64, mark int64) bool {
	if r := a.recent.Load(); r != nil {
		for i := range r.keys {
			if key := &r.keys[i]; key.id.Load() == id && mark-key.mark.Load() < 0 {
				return false
			}
		}
	}
	return mark-a.invalid.Load() >= 0
}

// begin reserves most ticks for a refund.
func (a *account) begin(most int64) { a.begun.Add(most) }

// shift returns the ticks refunded since mark, without the caller's own reservation.
func (a *account) shift(mark, own int64) int64 { return a.begun.Load() - own - mark }

// end replaces a reservation by the ticks that were refunded.
func (a *account) end(most, refunded int64) {
	done := a.done.Add(refunded)
	a.invalidateBefore(done - maxRefunded)
	a.begun.Add(refunded - most)
	if r := a.recent.Load(); r != nil && (done-refunded)/maxRefunded != done/maxRefunded {
		r.forget(a)
	}
}

// forget moves all marks to the stripe before their order is lost.
func (r *recent) forget(a *account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.keys {
		if key := &r.keys[i]; key.id.Load() != 0 {
			a.invalidateBefore(key.mark.Load())
			key.id.Store(0)
		}
	}
}
