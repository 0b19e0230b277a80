package algo

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// peeker is implemented by the limiters of this package: peek returns the
// answer of Acquire for n >= 0, and charges nothing.
type peeker interface {
	peek(key string, n int64) Decision
}

// wrapper is the same for limiters over other limiters.
type wrapper interface {
	peekThrough(ctx context.Context, key string, n int64) (Decision, error)
}

// peek returns the answer of Acquire, and charges nothing.
func peek(ctx context.Context, l Limiter, key string, n int64) (d Decision, err error) {
	if l, err = resolve(ctx, l, key); err != nil {
		return d, err
	}
	if ownType(l) {
		switch l := l.(type) {
		case peeker:
			return l.peek(key, n), nil
		case wrapper:
			return l.peekThrough(ctx, key, n)
		}
	}
	req := Request{l, key, n}
	if b, ok := l.(Batcher); ok && b.Batches(req, req) {
		answer := make([]Lease, 1)
		err = peekBatch(ctx, []Request{req}, answer)
		return answer[0].Decision, err
	}
	return peekForeign(ctx, l, key, n)
}

var ownPackage = reflect.TypeFor[Decision]().PkgPath()

// ownType reports whether the type of l is declared in this package. A type of
// another package that embeds one of ours has our private methods too, but they
// do not answer for its own Acquire.
func ownType(l Limiter) bool {
	t := reflect.TypeOf(l)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == ownPackage
}

// peekForeign peeks a limiter of which only Acquire is known. With n = 0 it
// reports whether n units fit. If they do not, acquiring them is denied,
// charges nothing and yields the RetryAfter; an admission after all, with a
// Delay or after a refund to the key, is given back. An in-flight limiter is
// only peeked, because its Acquire may wait.
func peekForeign(ctx context.Context, l Limiter, key string, n int64) (Decision, error) {
	lease, err := l.Acquire(ctx, key, 0)
	if err != nil {
		return Decision{}, fmt.Errorf("peek: %w", err)
	}
	lease.Release(Canceled)
	d := lease.Decision
	if !d.Allowed || d.Remaining >= n || d.Limit == 0 {
		return d, nil // a Limit of 0: it states nothing more, and may be unable to give back
	}
	if about, ok := Describe(l); ok && about.Unit == ConcurrentRequests {
		d.Allowed, d.Reason, d.RetryAfter = false, Quota, d.NextAfter
		if about.Shared || key == "" {
			d.Reason = Overload
		}
		if n > d.Limit {
			d.Reason, d.RetryAfter = Never, Forever
		}
		return d, nil
	}
	if lease, err = l.Acquire(ctx, key, n); err != nil {
		return Decision{}, err
	}
	lease.Release(Canceled)
	return lease.Decision, nil
}

// peekOthers completes the answers after the run parts[from:end] denied and
// everything was given back. The answers of the other limits do not change the
// denial.
func (c *compositeLease) peekOthers(ctx context.Context, parts []Request, from, end int) {
	for i, next := 0, 0; i < len(parts); i = next {
		next = runEnd(parts, i)
		switch {
		case i == from:
			c.peekSums(ctx, parts, from, end)
			next = end
		case i > from || peeksLocally(parts[i].Limiter):
			c.peekRun(ctx, parts, i, next)
		}
	}
}

// peekSums peeks the denied parts with the cost of earlier parts for the same
// limiter and key added: the denial counted those as charged, so its RetryAfter
// need not suffice for both at once.
func (c *compositeLease) peekSums(ctx context.Context, parts []Request, from, end int) {
	for i := from; i < end; i++ {
		p := &parts[i]
		if c.leases[i].Allowed || p.costWith(parts[:from]) == p.N {
			continue
		}
		d, err := peek(ctx, p.Limiter, p.Key, p.costWith(parts[:i]))
		if err == nil && !d.Allowed {
			c.leases[i].Decision = d
		}
	}
}

// peekRun peeks the run parts[i:end], with the cost of the earlier parts for
// the same limiter and key added. An answer that cannot be had is the zero
// Decision.
func (c *compositeLease) peekRun(ctx context.Context, parts []Request, i, end int) {
	if p := &parts[i]; end == i+1 {
		c.leases[i] = Lease{}
		c.leases[i].Decision, _ = peek(ctx, p.Limiter, p.Key, p.costWith(parts[:i]))
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

// costWith adds the cost of those parts that are for the same limiter and key.
func (r *Request) costWith(parts []Request) int64 {
	n := r.N
	for i := range parts {
		if r.sameBucket(parts[i]) {
			n = addSaturated(n, parts[i].N)
		}
	}
	return n
}

// sameBucket reports whether two requests are for the same limiter and key.
// Limiters that cannot be compared are never the same.
func (r *Request) sameBucket(o Request) bool {
	t := reflect.TypeOf(r.Limiter)
	if r.Key != o.Key || t != reflect.TypeOf(o.Limiter) {
		return false
	}
	comparable := t.Kind() == reflect.Pointer ||
		(reflect.ValueOf(r.Limiter).Comparable() && reflect.ValueOf(o.Limiter).Comparable())
	return comparable && r.Limiter == o.Limiter
}

// peeksLocally reports whether peeking l costs no call of foreign code, and is
// therefore worthwhile after a refund, to show the remaining units.
func peeksLocally(l Limiter) bool {
	switch w := l.(type) {
	case *shadow:
		return peeksLocally(w.limiter)
	case *Ban:
		return peeksLocally(w.limiter)
	}
	_, ok := l.(peeker)
	return ok && ownType(l)
}

// addSaturated adds two non-negative numbers.
func addSaturated(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
