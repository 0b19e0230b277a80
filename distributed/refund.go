package distributed

import "github.com/sluice-go/sluice/algo"

// refundLate undoes a charge whose caller has stopped waiting.
func (l *Limiter) refundLate(r *request) {
	a := r.answer(0)
	if a.flag() == flagWrongType {
		return
	}
	if d, h := r.limit.explain(a, r.n); d.Allowed && r.n > 0 {
		l.correct(r.keys[0], r.script, r.limit.refund(h, h.N))
	}
}

// correct sends a correction to Redis and drops the proof of a denial, which it
// may have made wrong.
func (l *Limiter) correct(redisKey string, s *script, a args) {
	l.store.send(newRequest(s, redisKey, a))
	l.store.denied.drop(redisKey)
}

// releaser is the limiter's side of its leases, apart from its public methods.
type releaser Limiter

// Release gives back the weight of a canceled admission, or frees the slots of
// units in flight.
func (r *releaser) Release(h algo.Handle, o algo.Outcome) {
	if r.slots != nil {
		r.slots.remove(h)
	}
	if (o == algo.Canceled || r.slots != nil) && h.N > 0 {
		r.refund(h, h.N)
	}
}

// Settle corrects the cost of an admission.
func (r *releaser) Settle(h algo.Handle, actual int64) {
	if r.slots != nil {
		r.slots.settle(h, actual)
	}
	if actual <= h.N {
		r.refund(h, h.N-actual)
		return
	}
	l := (*Limiter)(r)
	lim := l.load()
	l.correct(l.redisKey(h.Key), lim.script(), lim.force(h.Key, h, actual-h.N))
}

func (r *releaser) refund(h algo.Handle, n int64) {
	l := (*Limiter)(r)
	lim := l.load()
	l.correct(l.redisKey(h.Key), lim.script(), lim.refund(h, n))
}
