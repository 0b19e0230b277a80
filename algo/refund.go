package algo

import "github.com/sluice-go/sluice/internal/keystore"

// Refund gives back to key up to n units that it has spent and that still weigh, for work
// whose lease is gone: a request of yesterday's batch that failed, a customer whom support
// wants to help. Units that have come back by themselves are not given a second time. Up
// to n units more than the bound are admitted then.
//
// Where there is a lease, use [Lease.Release] or [Lease.Settle], and not both: what is given
// back twice is admitted twice. The error is [ErrCost] for a negative n.
func (b *TokenBucket) Refund(key string, n int64) error { return b.refundAny(key, n) }

// Refund gives back to key up to n units that it has spent and that still weigh; see
// [TokenBucket.Refund].
func (b *LeakyBucket) Refund(key string, n int64) error { return b.refundAny(key, n) }

// Refund gives back to key up to n units that it has spent and that still weigh, so that the
// next requests start sooner; those that wait keep their start times. See
// [TokenBucket.Refund].
func (p *Pacer) Refund(key string, n int64) error { return p.refundAny(key, n) }

// Refund gives back to key up to n units that it has spent in the current window, of its
// debt first; after a change of the period too. See [TokenBucket.Refund].
func (w *FixedWindow) Refund(key string, n int64) error { return w.refundAny(key, n) }

// refundAny gives back up to n units of key, of whatever charge.
func (k *keyed[S, V]) refundAny(key string, n int64) error {
	if n < 0 || k.store == nil {
		return k.misuse(n)
	}
	h := Handle{Key: key}
	read := func(s keystore.State[S], now int64) (S, int64, bool) {
		l := k.limit.Load()
		state, now, changed := k.repaired(l, s, now)
		h.setCharge(l.Charge(state, now, 0, 0), s.Mark)
		return state, l.Expiry(state, now), changed
	}
	if _, r := k.store.Update(key, keystore.Fresh, read); r == keystore.Updated {
		k.store.Update(key, keystore.Fresh, read) // again: where debt was cut, the mark is of before
	}
	h.N = n // as if all that weighs now were one charge of n units
	k.refund(h, n)
	return nil
}
