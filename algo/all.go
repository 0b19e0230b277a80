package algo

import (
	"context"
	"fmt"
)

// AcquireAll charges all of reqs or none: several limits, under different keys, in one decision.
//
// AcquireAll charges in order. When a limit denies, it refunds earlier charges and peeks the other
// limits, so that RetryAfter suffices for all. It holds no lock across limits, so a charge that is
// about to be refunded may deny another call; no call is admitted beyond a limit.
//
// The answer has the longest Delay, RetryAfter and ResetAfter of all limits, and the gravest Reason
// (Never, Banned, Overload, Quota). Limit, Remaining, NextAfter, Source and Cause come from the limit
// with that Reason and the least remaining. Limits that are off or on trial contribute only Trial. The
// order of the limits does not matter. [Lease.Parts] returns each decision; [Lease.Part] settles one
// limit.
//
// Requests for the same limiter and key add up, and adjacent requests of one [Batcher] are decided in
// one step. Put the limit that denies most often first, and one that may wait, such as an in-flight
// limit with a queue, last.
//
// A negative N is [ErrCost]; an empty list or a nil Limiter is an error. A limiter's error is returned
// with the number of its request, unless another limit denies: a denial wins in any order. Nothing
// stays charged then. Up to four limits take at most one allocation.
func AcquireAll(ctx context.Context, reqs ...Request) (lease Lease, err error) {
	direct, mixed, err := check(reqs)
	switch {
	case err != nil:
	case len(reqs) == 1:
		return reqs[0].Limiter.Acquire(ctx, reqs[0].Key, reqs[0].N)
	default:
		err = newCompositeLease(mixed).acquire(ctx, &lease, reqs, direct)
	}
	return lease, err
}

// check rejects invalid requests before any charge. direct: each limiter decides for itself; mixed:
// the costs differ.
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

// All puts one key under several limits, "10 a second and 1000 an hour": a request is charged to all
// or none, as in [AcquireAll]. A nested All counts as its limits; All of one limiter is that limiter.
// It panics without limiters or with a nil one. [About] describes the limit with the smallest quota.
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

// resolve returns a with its choices made.
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
func (a *all) Acquire(ctx context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, fmt.Errorf("request 1 of %d: %w", len(a.limiters), costError(n))
	}
	c := newCompositeLease(false)
	for _, l := range a.limiters {
		c.asked = append(c.asked, Request{l, key, n})
	}
	err = c.acquire(ctx, &lease, c.asked, !a.chooses)
	return lease, err
}

// Peek combines the answers of the limits.
func (a *all) Peek(ctx context.Context, key string, n int64) (d Decision, err error) {
	answers := make([]Lease, len(a.limiters))
	for i, l := range a.limiters {
		looked, failed := Peek(ctx, l, key, n)
		if failed == nil {
			answers[i].Decision = looked
		} else if err == nil {
			err = failed
		}
	}
	if err != nil && !anyDenies(answers) {
		return d, err
	}
	combine(&d, answers)
	return d, nil
}

// flatten appends the limits that decide on req.
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
