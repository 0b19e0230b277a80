package algo

import (
	"context"
	"reflect"
	"slices"
)

// denyBeside refunds all charges after the run parts[from:end] failed, peeks the other parts, and
// reports whether one denies: a denial wins in any order.
func (c *compositeLease) denyBeside(ctx context.Context, parts []Request, from, end int) bool {
	c.giveBack()
	clear(c.leases[from:end])
	c.peekOthers(ctx, parts, from, end)
	return anyDenies(c.leases)
}

// anyDenies reports whether one of several answers is a denial, not the zero answer of a failed
// limit.
func anyDenies(leases []Lease) bool {
	return slices.ContainsFunc(leases, func(l Lease) bool { return !l.Allowed && l.Reason != Admitted })
}

// peekOthers completes the answers after the run parts[from:end] denied and all charges were
// refunded. The other answers do not change the denial.
func (c *compositeLease) peekOthers(ctx context.Context, parts []Request, from, end int) {
	for i, next := 0, 0; i < len(parts); i = next {
		next = runEnd(parts, i)
		switch {
		case i == from:
			c.peekSums(ctx, parts, from, end)
			next = end
		case i > from || peeksLocally(parts[i].Limiter):
			c.peekRun(ctx, parts, i, next)
		default:
			for k := i; k < next; k++ {
				c.leases[k].uncharge(parts[k].N)
			}
		}
	}
}

// peekSums peeks the denied parts with the cost of earlier parts for the same limiter and key
// added: the denial counted those as charged, so its RetryAfter may be too short for both.
func (c *compositeLease) peekSums(ctx context.Context, parts []Request, from, end int) {
	for i := from; i < end; i++ {
		p := &parts[i]
		if c.leases[i].Allowed || p.costWith(parts[:from]) == p.N {
			continue
		}
		d, err := Peek(ctx, p.Limiter, p.Key, p.costWith(parts[:i]))
		if err == nil && !d.Allowed {
			c.leases[i].Decision = d
		}
	}
}

// peekRun peeks the run parts[i:end], with the cost of the earlier parts for the same limiter and
// key added. A failed peek leaves the zero Decision.
func (c *compositeLease) peekRun(ctx context.Context, parts []Request, i, end int) {
	if p := &parts[i]; end == i+1 {
		c.leases[i] = Lease{}
		c.leases[i].Decision, _ = Peek(ctx, p.Limiter, p.Key, p.costWith(parts[:i]))
		return
	}
	reqs := slices.Clone(parts[i:end])
	for k := range reqs {
		if p := &parts[i+k]; !slices.ContainsFunc(parts[i:i+k], p.sameBucket) {
			reqs[k].N = p.costWith(parts[:i]) // a batch adds up its own requests
		}
	}
	_ = peekBatch(ctx, reqs, c.leases[i:end])
}

// costWith returns r's cost plus that of parts for the same limiter and key.
func (r *Request) costWith(parts []Request) int64 {
	n := r.N
	for i := range parts {
		if r.sameBucket(parts[i]) {
			n = addSaturated(n, parts[i].N)
		}
	}
	return n
}

// sameBucket reports whether two requests are for the same limiter and key. Incomparable limiters
// are never the same.
func (r *Request) sameBucket(o Request) bool {
	t := reflect.TypeOf(r.Limiter)
	if r.Key != o.Key || t != reflect.TypeOf(o.Limiter) {
		return false
	}
	comparable := t.Kind() == reflect.Pointer ||
		(reflect.ValueOf(r.Limiter).Comparable() && reflect.ValueOf(o.Limiter).Comparable())
	return comparable && r.Limiter == o.Limiter
}

// peeksLocally reports whether peeking l takes no round trip and calls no foreign code, so that it
// is worthwhile after a refund, to show the remaining units.
func peeksLocally(l Limiter) bool {
	switch t := l.(type) {
	case Batcher:
		return false
	case Wrapper:
		inner := t.Unwrap()
		return len(inner) > 0 && !slices.ContainsFunc(inner, func(one Limiter) bool { return !peeksLocally(one) })
	case Peeker:
		return !About(l).Remote
	}
	return false
}

// uncharge restores the answer from before a charge of n units that was refunded.
func (d *Decision) uncharge(n int64) {
	if d.Allowed && d.Limit > 0 {
		d.Remaining, d.NextAfter, d.ResetAfter, d.Delay = min(addSaturated(max(d.Remaining, 0), n), d.Limit), 0, 0, 0
	}
}
