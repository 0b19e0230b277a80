package algo

import (
	"context"
	"fmt"
)

// AcquireAll charges all of reqs or none: several limits, of different kinds
// and under different keys, in one decision. Examples are the bucket of a
// service and the bucket of one of its calls, or a limit per user, per route
// and in total.
//
// The limits are charged in order. When one denies, the earlier charges are
// given back and the other limits are peeked, so the RetryAfter of the answer
// suffices for all of them. No lock is held across limits: two calls that name
// the same limits in opposite orders cannot block each other. A call may be
// denied because of a charge that is about to be given back, but none is
// admitted beyond a limit. Limits of this package that follow each other are
// decided at one reading of the clock.
//
// In the answer Delay, RetryAfter and ResetAfter are the longest of all
// limits, and Reason is the gravest (Never, Banned, Overload, Quota). Limit, Remaining,
// NextAfter, Source and Cause come from one limit: of those with that Reason the one with
// the least remaining. Limits that are switched off or on trial do not count: of them only
// Trial is in the answer. So neither their presence nor the order of the limits changes the
// answer. [Lease.Parts] returns the decision of each limit. The lease releases
// the limits in reverse order; [Lease.Part] settles one of them by itself.
//
// Requests for the same limiter and key add up, and a denial answers them as
// one request for the sum. Where a cost is not a sum, as with smooth-bursty,
// smooth-warming-up and markers, RetryAfter is then an estimate. Adjacent
// requests of one backend are decided in one atomic step, see [Batcher]. A
// single request is simply acquired.
//
// Put the limit that denies most often first. Put a limit that may wait, such
// as an in-flight limit with a queue, last: the charges before it are held
// while it waits.
//
// A negative N is [ErrCost]; an empty list or a nil Limiter is an error.
// Nothing is charged then. The error of a limiter is returned with the number
// of its request, after the earlier charges are given back. Up to four limits
// take at most one allocation.
func AcquireAll(ctx context.Context, reqs ...Request) (lease Lease, err error) {
	direct, mixed, err := check(reqs)
	switch {
	case err != nil:
	case len(reqs) == 1:
		return reqs[0].Limiter.Acquire(ctx, reqs[0].Key, reqs[0].N)
	case direct:
		err = newCompositeLease(len(reqs), mixed).acquire(ctx, &lease, reqs, reqs)
	default:
		err = newCompositeLease(len(reqs), mixed).acquireFlattened(ctx, &lease, reqs)
	}
	return lease, err
}

// check finds invalid requests before anything is charged, and reports whether
// each limiter decides for itself, and whether the costs differ.
func check(reqs []Request) (direct, mixed bool, err error) {
	if len(reqs) == 0 {
		return false, false, fmt.Errorf("%w: no requests", errRequest)
	}
	direct = true
	for i := range reqs {
		r := &reqs[i]
		switch r.Limiter.(type) {
		case *RateLimiter:
		case nil:
			return false, false, fmt.Errorf("%w: request %d of %d has no limiter", errRequest, i+1, len(reqs))
		case *all, Chooser:
			direct = false
		}
		if r.N < 0 {
			return false, false, fmt.Errorf("request %d of %d: %w", i+1, len(reqs), costError(r.N))
		}
		mixed = mixed || r.N != reqs[0].N
	}
	return direct, mixed, nil
}

// All puts one key under several limits, "10 a second and 1000 an hour": a
// request passes if it passes all of them, and is charged to all or none, as
// in [AcquireAll]. The limits of a nested All count one by one; All of one
// limiter is that limiter. It panics if there is no limiter or one is nil.
//
// [About] answers for the limit with the smallest quota, and of two equal
// quotas for the longer window: a caller may send that much at once without
// being denied by any of the limits. Limits that are Off are left out. Shared is true if it is for one of the limits.
// Callers that show every window describe the limiters one by one.
func All(limiters ...Limiter) Limiter {
	if len(limiters) == 0 {
		panic("algo: All: no limiters")
	}
	a := new(all)
	for _, l := range limiters {
		mustLimiter(l, "All")
		if inner, ok := l.(*all); ok {
			a.limiters, a.chooses = append(a.limiters, inner.limiters...), a.chooses || inner.chooses
		} else {
			a.limiters = append(a.limiters, l)
		}
		_, chooses := l.(Chooser)
		a.chooses = a.chooses || chooses
	}
	if len(a.limiters) == 1 {
		return a.limiters[0]
	}
	return a
}

type all struct {
	limiters []Limiter
	chooses  bool // one of them is a Chooser
}

// Unwrap returns the limits.
func (a *all) Unwrap() []Limiter { return a.limiters }

// resolve returns a without the choices among its limits.
func (a *all) resolve(ctx context.Context, key string) (_ Limiter, err error) {
	if !a.chooses {
		return a, nil
	}
	resolved := &all{limiters: make([]Limiter, len(a.limiters))}
	for i, one := range a.limiters {
		if resolved.limiters[i], err = Resolve(ctx, one, key); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

// Acquire charges n units of every limit, or none.
func (a *all) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	var room [inlineParts]Request
	reqs := room[:0]
	for _, l := range a.limiters {
		reqs = append(reqs, Request{l, key, n})
	}
	return AcquireAll(ctx, reqs...)
}

// Peek combines the answers of the limits.
func (a *all) Peek(ctx context.Context, key string, n int64) (d Decision, err error) {
	answers := make([]Lease, len(a.limiters))
	for i, l := range a.limiters {
		if answers[i].Decision, err = Peek(ctx, l, key, n); err != nil {
			return d, err
		}
	}
	combine(&d, answers)
	return d, nil
}

// acquireFlattened is acquire for requests that reach their limits through
// choices and other compositions.
func (c *compositeLease) acquireFlattened(ctx context.Context, lease *Lease, reqs []Request) (err error) {
	var room [inlineParts]Request
	parts := room[:0]
	for i := range reqs {
		if parts, err = flatten(ctx, parts, reqs[i]); err != nil {
			return requestError(reqs, i, err)
		}
		for len(c.owners) < len(parts) {
			c.owners = append(c.owners, i)
		}
	}
	return c.acquire(ctx, lease, reqs, parts)
}

// flatten appends the limits that decide about req.
func flatten(ctx context.Context, parts []Request, req Request) (_ []Request, err error) {
	if req.Limiter, err = chosen(ctx, req.Limiter, req.Key); err != nil {
		return nil, err
	}
	several, ok := req.Limiter.(*all)
	if !ok {
		return append(parts, req), nil
	}
	for _, l := range several.limiters {
		if parts, err = flatten(ctx, parts, Request{l, req.Key, req.N}); err != nil {
			return nil, err
		}
	}
	return parts, nil
}
