package algo

import (
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// corrections is the Releaser of a keyed: not every limiter has its methods,
// and most calls of Release return at once.
type corrections struct {
	settle func(h Handle, actual int64)
}

// Release refunds a canceled admission as far as it still weighs. With any
// other outcome the charge stays.
func (c *corrections) Release(h Handle, o Outcome) {
	if o.Result() == Canceled && h.N > 0 {
		c.settle(h, 0)
	}
}

// Settle corrects the cost of an admission.
func (c *corrections) Settle(h Handle, actual int64) { c.settle(h, actual) }

// settle corrects the cost of an admission to actual units.
func (k *keyed[S, V]) settle(h Handle, actual int64) {
	if actual <= h.N {
		k.refund(h, h.N-actual)
		return
	}
	k.store.Update(h.Key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, _ := k.repaired(l, s, now)
		state, cut := l.ForceCharge(state, h.charge(), now, actual-h.N)
		if cut {
			s.Invalidate()
		}
		return state, l.Expiry(state, now), true
	})
}

// refund gives n units of an admission back, at most its remaining weight.
func (k *keyed[S, V]) refund(h Handle, n int64) {
	c, mark := h.charge(), h.State[2]
	most := k.limit.Load().MaxRefund(c, n)
	k.store.Refund(h.Key, mark, most, func(s keystore.State[S], now, shift int64) (S, int64, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.repaired(l, s, now)
		if changed && !s.Valid(mark) {
			return state, l.Expiry(state, now), 0, true
		}
		state, given := l.Refund(state, c, now, n, shift)
		return state, l.Expiry(state, now), given, given > 0 || changed
	})
}

// charge returns an admission in the form that decide uses.
func (h *Handle) charge() decide.Charge {
	return decide.Charge{N: h.N, At: h.At, A: h.State[0], B: h.State[1]}
}

// setCharge writes the fields that charge reads, and the mark of the charge.
func (h *Handle) setCharge(c decide.Charge, mark int64) {
	h.At, h.State[0], h.State[1], h.State[2] = c.At, c.A, c.B, mark
}
