package algo

import "context"

// All is one key under several limits, "10 a second and 1000 an hour": a
// request passes if it passes all of them, and is charged to all or none, as
// [AcquireAll] has it.
//
// [Lease.Parts] has the decision of each, in order; limits that are themselves
// made by All count one by one. Everything else about the decision, the order
// and the lease is as for AcquireAll. All of one limiter is that limiter.
//
// [Describe] answers for the limit with the smallest quota, of two equal ones
// that with the longer window: it is what a caller may send at once without
// being denied by any. Several windows cannot be told as one; callers that
// show them all describe the limiters one by one.
//
// It panics if there is no limiter or one is nil.
func All(limiters ...Limiter) Limiter {
	if len(limiters) == 0 {
		panic("algo: All: no limiters")
	}
	a := new(all)
	for _, l := range limiters {
		mustLimiter(l, "All")
		if inner, ok := l.(*all); ok {
			a.limiters = append(a.limiters, inner.limiters...)
		} else {
			a.limiters = append(a.limiters, l)
		}
	}
	if len(a.limiters) == 1 {
		return a.limiters[0]
	}
	return a
}

type all struct{ limiters []Limiter }

// Acquire charges n units of every limit, or none.
func (a *all) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	err = a.acquire(ctx, &lease, key, n)
	return lease, err
}

func (a *all) acquire(ctx context.Context, lease *Lease, key string, n int64) error {
	var room [usualLeaves]leaf
	leaves, from := room[:0], Request{Key: key, N: n}
	for i, l := range a.limiters {
		var err error
		if leaves, err = grow(ctx, leaves, l, &from, i); err != nil {
			return partError(len(a.limiters), &leaf{Request{Limiter: l}, i}, err)
		}
	}
	return newGroup(ctx, leaves, len(a.limiters)).acquire(lease, leaves)
}

// acquireIn is a composition within a wrapper within a composition; it reads
// the clock for itself.
func (a *all) acquireIn(p *pass, lease *Lease, key string, n int64) error {
	return a.acquire(p.ctx, lease, key, n)
}

func (a *all) askIn(p *pass, d *Decision, key string, n int64) error {
	answers := make([]Lease, len(a.limiters))
	for i, l := range a.limiters {
		if err := p.ask(l, &answers[i].Decision, key, n); err != nil {
			return err
		}
	}
	*d = combine(answers)
	return nil
}

// Describe answers for the smallest quota.
func (a *all) Describe() (smallest Description, ok bool) {
	for _, l := range a.limiters {
		d, known := Describe(l)
		if !known {
			continue
		}
		if !ok || d.Quota < smallest.Quota || (d.Quota == smallest.Quota && d.Window > smallest.Window) {
			smallest, ok = d, true
		}
	}
	return smallest, ok
}
