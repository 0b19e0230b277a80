package engine

import "github.com/sluice-go/sluice/internal/keystore"

// Settle is part of [Engine].
func (k *Keyed[S, V]) Settle(key string, c Charge, actual int64) {
	if actual <= c.N {
		k.refund(key, c, c.N-actual)
		return
	}
	k.store.Update(key, keystore.Fresh, func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, _ := k.Repaired(l, s, now)
		state, cut := l.ForceCharge(state, c.Charge, now, actual-c.N)
		if cut {
			s.Invalidate()
		}
		return state, l.Expiry(state, now), true
	})
}

// refund gives n units of a charge back, at most its remaining weight, and returns how many, begun ones too.
func (k *Keyed[S, V]) refund(key string, c Charge, n int64) int64 {
	l := k.limit.Load()
	most, unit := l.MaxRefund(c.Charge, n), max(l.MaxRefund(c.Charge, 1), 1)
	given := k.store.Refund(key, c.Mark, most, func(s keystore.State[S], now, shift int64) (S, int64, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.Repaired(l, s, now)
		if changed && !s.Valid(c.Mark) {
			return state, l.Expiry(state, now), 0, true
		}
		state, given := l.Refund(state, c.Charge, now, n, shift)
		return state, l.Expiry(state, now), given, given > 0 || changed
	})
	return (given + unit - 1) / unit
}

// Refund is part of [Engine].
func (k *Keyed[S, V]) Refund(key string, n int64) int64 {
	var c Charge
	read := func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.Repaired(l, s, now)
		c = Charge{l.Charge(state, now, 0, 0), s.Mark}
		return state, l.Expiry(state, now), changed
	}
	if _, r := k.store.Update(key, keystore.Fresh, read); r == keystore.Updated {
		k.store.Update(key, keystore.Fresh, read) // again: where debt was cut, the mark is of before
	}
	c.N = n // as if all that weighs now were one charge of n units
	return k.refund(key, c, n)
}
