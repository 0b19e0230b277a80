package algo

import (
	"fmt"
	"slices"
)

// review asks the limits what they would say now that nothing is charged,
// after the step leaves[from:end] denied. An answer that cannot be had leaves
// the zero Decision: the denial stands all the same.
func (g *group) review(leaves []leaf, from, end int) {
	if from > 0 {
		g.pass.elapse() // giving back took time, and refunds read the clock
	}
	for i := 0; i < len(leaves); {
		next := batchEnd(leaves, i)
		switch {
		case i == from:
			g.reviewDenied(leaves, from, end)
			next = end
		case i > from || cheap(leaves[i].Limiter):
			g.reviewOthers(leaves, i, next)
		}
		i = next
	}
}

// cheap reports whether asking again is worth it only to show what is left
// after a charge was given back.
func cheap(l Limiter) bool {
	if w, ok := l.(interface{ wrapped() Limiter }); ok {
		return cheap(w.wrapped())
	}
	_, local := l.(part)
	return local
}

// reviewDenied asks the limits that denied about the sum, if earlier requests
// were for the same limiter and key: their answer took those as charged, and
// may suffice for one after the other but not for both at once.
func (g *group) reviewDenied(leaves []leaf, from, end int) {
	for i := from; i < end; i++ {
		earlier := before(leaves[:from], &leaves[i])
		if earlier == 0 || g.leases[i].Allowed {
			continue
		}
		var d Decision
		n := addSaturated(before(leaves[from:i], &leaves[i]), leaves[i].N)
		err := g.pass.ask(leaves[i].Limiter, &d, leaves[i].Key, addSaturated(earlier, n))
		if err == nil && !d.Allowed {
			g.leases[i].Decision = d
		}
	}
}

// reviewOthers asks the run leaves[i:end], each with what the earlier requests
// want of the same limiter and key.
func (g *group) reviewOthers(leaves []leaf, i, end int) {
	if end-i == 1 {
		l := &leaves[i]
		n := addSaturated(l.N, before(leaves[:i], l))
		g.leases[i] = Lease{}
		if g.pass.ask(l.Limiter, &g.leases[i].Decision, l.Key, n) != nil {
			g.leases[i] = Lease{}
		}
		return
	}
	reqs := requests(leaves[i:end])
	for k := range reqs {
		l := &leaves[i+k]
		first := i + slices.IndexFunc(leaves[i:], func(o leaf) bool { return alike(&o, l) })
		if first == i+k { // the first of its kind carries them
			reqs[k].N = addSaturated(l.N, before(leaves[:i], l))
		}
	}
	_ = g.pass.askBatch(reqs, g.leases[i:end]) // an error leaves the zero Decision
}

// ask answers what acquire would, and charges nothing.
func (p *pass) ask(l Limiter, d *Decision, key string, n int64) (err error) {
	if l, err = resolve(p.ctx, l, key); err != nil {
		return err
	}
	switch l := l.(type) {
	case part:
		l.askIn(p, d, key, n)
		return nil
	case wrapper:
		return l.askIn(p, d, key, n)
	case Batcher:
		leases := make([]Lease, 1)
		if err = p.askBatch([]Request{{l, key, n}}, leases); err == nil {
			*d = leases[0].Decision
		}
		return err
	default:
		return p.askOther(l, d, key, n)
	}
}

// askBatch asks the backend of the first request.
func (p *pass) askBatch(reqs []Request, leases []Lease) error {
	p.elapse()
	clear(leases)
	err := reqs[0].Limiter.(Batcher).PeekBatch(p.ctx, reqs, leases)
	for i := range leases {
		leases[i] = Lease{Decision: leases[i].Decision} // a charge is none of our business
	}
	if err != nil {
		clear(leases)
	}
	return err
}

// askOther asks a limiter that knows no more than Acquire. A peek says whether
// n units fit. If they do not, acquiring them is denied, charges nothing and
// tells when they will; what is admitted after all, with a Delay or because
// somebody gave units back, is given back. An in-flight limiter is only peeked,
// because it might let the request wait.
func (p *pass) askOther(l Limiter, d *Decision, key string, n int64) error {
	p.elapse()
	peek, err := l.Acquire(p.ctx, key, 0)
	if err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	peek.Release(Canceled)
	*d = peek.Decision
	if !d.Allowed || d.Remaining >= n || d.Limit == 0 {
		return nil // with a Limit of 0 it knows no more, and may not give back
	}
	if about, ok := Describe(l); ok && about.Unit == ConcurrentRequests {
		d.Allowed, d.Reason, d.RetryAfter = false, Overload, d.NextAfter
		if n > d.Limit {
			d.Reason, d.RetryAfter = Never, Forever
		}
		return nil
	}
	lease, err := l.Acquire(p.ctx, key, n)
	if err != nil {
		return err
	}
	lease.Release(Canceled)
	*d = lease.Decision
	return nil
}
