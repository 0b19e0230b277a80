package distributed

import "github.com/sluice-go/sluice/algo"

// takeBack undoes a charge whose caller had given up when the answer came.
func (l *Limiter) takeBack(e *entry) {
	var d algo.Decision
	if e.reply[len(e.reply)-1] == flagType {
		return
	}
	e.limit.explain(&d, e.now, e.reply, e.n)
	if !d.Allowed || e.n == 0 {
		return
	}
	h := algo.Handle{N: e.n}
	e.limit.remember(&h, e)
	l.credit(e.keys[0], e.script, e.limit.refund(h, e.n))
}

// credit tells Redis of a correction, and the deny cache, whose proof may not
// hold any more.
func (l *Limiter) credit(redisKey string, s *script, a args) {
	l.store.tell(ask(s, redisKey, a))
	l.store.denied.drop(redisKey)
}

// releaser is the limiter's side of its leases, kept off its public methods.
type releaser Limiter

// Release gives back what a canceled admission still weighs, or frees the
// slots of what was in flight.
func (r *releaser) Release(h algo.Handle, o algo.Outcome) {
	if r.holders != nil {
		r.holders.remove(h)
	}
	if (o == algo.Canceled || r.holders != nil) && h.N > 0 {
		r.send(h, (*Limiter)(r).load().refund(h, h.N))
	}
}

// Settle corrects the cost of an admission.
func (r *releaser) Settle(h algo.Handle, actual int64) {
	if r.holders != nil {
		r.holders.settle(h, actual)
	}
	lim := (*Limiter)(r).load()
	if actual <= h.N {
		r.send(h, lim.refund(h, h.N-actual))
		return
	}
	r.send(h, lim.owe(h, actual-h.N))
}

func (r *releaser) send(h algo.Handle, a args) {
	l := (*Limiter)(r)
	l.credit(l.redisKey(h.Key), l.load().script(), a)
}
