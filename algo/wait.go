package algo

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/algo/internal/line"
)

// Wait acquires n units of l under key and sleeps until the work may start. Until admitted it asks again at
// least once a second, to notice when the limit is switched off, reset or raised; it sleeps a Delay in one
// piece. Its denials are no offence; see [Tentative].
//
// Callers of Wait for the same limiter and key in this process are served in the order of arrival; callers
// of Acquire may overtake them. Limiters of an incomparable type have no such order.
//
// The error is nil exactly when the units are charged and the work may start. Otherwise nothing stays
// charged, and the error is:
//
//   - [ErrWait], without a sleep, if admission, after all callers ahead, would come after the context's
//     deadline, or if l denies for overload, for ever or without a RetryAfter; after a sleep, if the Delay
//     of the admission outlasts the deadline. An in-flight limit waits in its own queue: see
//     adaptive.WithQueue;
//   - [ErrCost] if n can never fit;
//   - the context's error if it ends during the sleep.
func Wait(ctx context.Context, l Limiter, key string, n int64) (Lease, error) {
	return WaitAll(ctx, Request{l, key, n})
}

// WaitAll is [Wait] for several limits, charged all or none as by [AcquireAll]. Its callers queue
// for the first limit and key.
//
// With [ErrWait] and [ErrCost] the lease has the denial's Decision and Parts; for callers whose
// turn would have come too late the Decision is an estimate.
func WaitAll(ctx context.Context, reqs ...Request) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	if _, _, err := check(reqs); err != nil {
		return Lease{}, err
	}
	ctx = Tentative(ctx)
	first := reqs[0]
	limiter, err := chosen(ctx, first.Limiter, first.Key) // callers queue for the limiter that decides
	if err != nil {
		return Lease{}, err
	}
	first.Limiter = limiter
	var wait time.Duration
	if !line.Waits(first.Limiter, first.Key) {
		var lease Lease
		if lease, wait, err = attempt(ctx, reqs); err == nil && !lease.Allowed {
			err = inTime(ctx, wait)
		}
		if err != nil || lease.Allowed {
			return start(ctx, lease, err)
		}
	}
	lease, err := waitInLine(ctx, first, reqs, wait)
	return start(ctx, lease, err)
}

// waitInLine waits for the caller's turn and then until reqs fit: at least for wait if no caller is
// ahead.
func waitInLine(ctx context.Context, first Request, reqs []Request, wait time.Duration) (lease Lease, err error) {
	place := line.Join(first.Limiter, first.Key, first.N)
	defer place.Leave()
	lease.Reason, lease.RetryAfter = Quota, wait // an estimate until the first attempt
	if ahead := place.Ahead(); ahead > 0 {
		first.N = addSaturated(ahead, first.N)
		wait, lease.RetryAfter = 0, soonest(ctx, first)
		if err := inTime(ctx, lease.RetryAfter); err != nil {
			return lease, err
		}
	}
	if !place.Wait(ctx, Forever) {
		return Lease{}, ctx.Err()
	}
	for {
		if err := inTime(ctx, wait); err != nil {
			return lease, err
		}
		if err := Sleep(ctx, min(wait, lookEvery)); err != nil {
			return Lease{}, err
		}
		if lease, wait, err = attempt(ctx, reqs); err != nil || lease.Allowed {
			return lease, err
		}
	}
}

// lookEvery is how soon a waiter notices that its limit has changed.
const lookEvery = time.Second

// attempt acquires once. It returns a denial with the wait until the next attempt, or with an error
// if waiting is useless.
func attempt(ctx context.Context, reqs []Request) (lease Lease, wait time.Duration, err error) {
	lease, err = AcquireAll(ctx, reqs...)
	switch {
	case err != nil || lease.Allowed:
	case lease.Reason == Never:
		err = fmt.Errorf("%w: the cost is more than the limit of %d can admit", ErrCost, lease.Limit)
	case lease.RetryAfter == Forever && lease.Reason != Overload:
		err = fmt.Errorf("%w: no wait ends this denial", ErrWait)
	case lease.Reason == Overload:
		err = fmt.Errorf("%w: denied for overload; adaptive.WithQueue makes a limit in flight wait for a slot", ErrWait)
	case lease.RetryAfter <= 0:
		err = fmt.Errorf("%w: denied without a RetryAfter", ErrWait)
	}
	return lease, lease.RetryAfter, err
}

// soonest returns the least time until req can be admitted; 0 if unknown. Beyond the quota that
// includes the time in which the rest comes back.
func soonest(ctx context.Context, req Request) time.Duration {
	if _, limited := ctx.Deadline(); !limited {
		return 0
	}
	about := About(req.Limiter)
	var rest time.Duration
	if about.Quota > 0 && req.N > about.Quota {
		rest = time.Duration(min(float64(req.N-about.Quota)/float64(about.Quota)*float64(about.Window), math.MaxInt64/4))
		req.N = about.Quota
	}
	d, err := Peek(ctx, req.Limiter, req.Key, req.N)
	if err != nil || d.RetryAfter == Forever {
		return 0
	}
	return d.RetryAfter + rest
}

// inTime returns ErrWait if the context's deadline comes before d has passed.
func inTime(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left < d {
			return fmt.Errorf("%w: the context ends in %v, admission comes in %v", ErrWait, left, d)
		}
	}
	return nil
}

// start sleeps for the Delay of an admission, and cancels it if ctx ends first.
func start(ctx context.Context, lease Lease, err error) (Lease, error) {
	if err != nil {
		return lease, err
	}
	if err = Sleep(ctx, lease.Delay); err != nil {
		lease.Release(Canceled)
		lease.Allowed, lease.Reason, lease.RetryAfter = false, Quota, lease.Delay
	}
	return lease, err
}

// Sleep sleeps for d, a Delay or RetryAfter. If d is [Forever], or the context's deadline comes
// sooner, it returns [ErrWait] without a sleep; if the context ends during the sleep it returns the
// context's error.
func Sleep(ctx context.Context, d time.Duration) error {
	switch {
	case d <= 0:
		return nil
	case d == Forever:
		return fmt.Errorf("%w: no wait ends this denial", ErrWait)
	}
	if err := inTime(ctx, d); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
