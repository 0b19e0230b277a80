package admission

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/line"
	"github.com/sluice-go/sluice/keyfunc"
)

// Attempt is one call, or one message of a stream, before one policy.
type Attempt struct {
	Key  string
	Cost int64

	MaxWait time.Duration // how long to wait for quota that is spent; 0: do not wait
	Reserve float64       // share of the limit that the call must leave to others; 0: none

	Cause Cause // of a denial
	Err   error // of Canceled, FailedOpen and FailedClosed; ErrNoKey of ByMissingKey; context.DeadlineExceeded of an overload that no deadline allows

	Start   time.Time       // when the wait began; only with an observer
	at      time.Time       // when the answer was known
	Context context.Context // of the call
}

// Cause is why a call was denied.
type Cause uint8

// The causes.
const (
	ByLimiter    Cause = iota // the limiter denied it
	ByMissingKey              // it has no key
	ByDeadline                // the wait would outlast its deadline
	ByReserve                 // the rest of the limit is reserved for others
)

// Admit decides on a call. Allowed, FailedOpen and Skipped: the call may start,
// and lease is acquired, or zero if nothing limits the call. Otherwise nothing
// stays charged, and lease.Decision is the denial, if there was one.
func (p *Policy[C]) Admit(ctx context.Context, call C, lease *algo.Lease, a *Attempt) Result {
	if r := p.KeyAndCost(ctx, call, lease, a); r != Allowed {
		return r
	}
	return p.Acquire(ctx, lease, a)
}

// KeyAndCost finds the key and the cost of a call. Allowed: Acquire decides.
func (p *Policy[C]) KeyAndCost(ctx context.Context, call C, lease *algo.Lease, a *Attempt) Result {
	var err error
	a.Context = ctx
	if a.Key, err = p.Key(call); err != nil {
		if r := p.withoutKey(ctx, call, lease, a, err); r != Allowed {
			return r
		}
	}
	if p.Cost == nil {
		a.Cost = 1
		return Allowed
	}
	return p.FindCost(ctx, call, a)
}

// FindKey finds the key of a call.
func (p *Policy[C]) FindKey(ctx context.Context, call C, lease *algo.Lease, a *Attempt) Result {
	var err error
	a.Context = ctx
	if a.Key, err = p.Key(call); err == nil {
		return Allowed
	}
	return p.withoutKey(ctx, call, lease, a, err)
}

// withoutKey classifies a call whose key could not be found.
func (p *Policy[C]) withoutKey(ctx context.Context, call C, lease *algo.Lease, a *Attempt, err error) Result {
	if !isNoKey(err) {
		a.Key = ""
		return p.Undecided(ctx, a, err)
	}
	key, mode, err := p.Missing.keyFor(call)
	switch {
	case err != nil:
		a.Key = ""
		return p.Undecided(ctx, a, err)
	case mode == Skip:
		return Skipped
	case mode == Deny:
		a.Key, a.Cause, a.Err = "", ByMissingKey, keyfunc.ErrNoKey
		lease.Decision = algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}
		return a.denied(ctx)
	}
	a.Key = key
	return Allowed
}

// FindCost finds the cost of a call.
func (p *Policy[C]) FindCost(ctx context.Context, call C, a *Attempt) Result {
	a.Cost = 1
	if p.Cost != nil {
		if a.Cost = p.Cost(call); a.Cost < 0 {
			return p.Undecided(ctx, a, errNegative)
		}
	}
	return Allowed
}

// Acquire asks the limiter under the key and cost of a, and waits where that is
// part of the answer.
func (p *Policy[C]) Acquire(ctx context.Context, lease *algo.Lease, a *Attempt) Result {
	if p.Observe != nil {
		a.begin()
		a.Context = ctx
	}
	var err error
	if a.MaxWait > 0 {
		err = waitForQuota(algo.Tentative(ctx), lease, a, p.Limiter, func(ctx context.Context) (algo.Lease, error) {
			return p.Limiter.Acquire(ctx, a.Key, a.Cost)
		})
	} else {
		*lease, err = p.Limiter.Acquire(ctx, a.Key, a.Cost)
	}
	if err == nil && lease.Allowed && lease.Delay <= 0 && a.Reserve <= 0 {
		if p.Observe != nil {
			a.end()
		}
		return Allowed
	}
	r := p.conclude(ctx, lease, a, err)
	if p.Observe != nil {
		a.end()
	}
	return r
}

// waitForQuota acquires, and repeats that while the quota denies, up to MaxWait.
// Calls that wait for the same limiter and key are served in the order of their
// arrival.
func waitForQuota(ctx context.Context, lease *algo.Lease, a *Attempt, l algo.Limiter, acquire func(context.Context) (algo.Lease, error)) (err error) {
	var wait time.Duration
	if !line.Waits(l, a.Key) {
		if *lease, err = acquire(ctx); err != nil || !a.mayWait(ctx, lease, &wait) {
			return err
		}
	}
	place := line.Join(l, a.Key, a.Cost)
	defer place.Leave()
	if place.Ahead() > 0 {
		joined := time.Now()
		if !place.Wait(ctx, a.MaxWait) && ctx.Err() != nil {
			a.Cause, lease.Decision = ByDeadline, algo.Decision{Reason: algo.Quota, RetryAfter: defaultWait}
			return nil
		}
		a.MaxWait, wait = a.MaxWait-time.Since(joined), 0 // at the end of its patience it asks once
	}
	for {
		wait = min(wait, lookEvery)
		if algo.Sleep(ctx, wait) != nil {
			a.Cause = ByDeadline
			return nil
		}
		a.MaxWait -= wait
		if *lease, err = acquire(ctx); err != nil || !a.mayWait(ctx, lease, &wait) {
			return err
		}
	}
}

// lookEvery is how soon a waiter notices that its limit has changed.
const lookEvery = time.Second

// mayWait reports whether waiting cures the answer, and there is time for it.
func (a *Attempt) mayWait(ctx context.Context, lease *algo.Lease, wait *time.Duration) bool {
	if lease.Allowed || lease.Reason != algo.Quota && lease.Reason != algo.Banned {
		return false
	}
	*wait = waitFor(&lease.Decision)
	if *wait > a.MaxWait || *wait == algo.Forever {
		return false
	}
	if TimeLeft(ctx) < *wait {
		a.Cause = ByDeadline
		return false
	}
	return true
}

// conclude classifies every answer of the limiter but a plain admission.
func (p *Policy[C]) conclude(ctx context.Context, lease *algo.Lease, a *Attempt, err error) Result {
	d := &lease.Decision
	switch {
	case err != nil:
		return p.Undecided(ctx, a, err)
	case !d.Allowed:
		if d.Reason == algo.Overload && d.RetryAfter == algo.Forever {
			a.Err = context.DeadlineExceeded // only a request without a deadline could fit
		}
		return a.denied(ctx)
	case p.Reserved(d, a.Reserve):
		lease.Release(algo.Canceled)
		a.Cause = ByReserve
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Overload, algo.Forever
		return a.denied(ctx)
	}
	if delay := d.Delay; algo.Sleep(ctx, delay) != nil {
		lease.Release(algo.Canceled)
		a.Cause = ByDeadline
		deny(d, delay)
		return a.denied(ctx)
	} else {
		elapse(d, delay)
	}
	return Allowed
}

// Reserved reports whether d leaves less than share of its limit.
func (p *Policy[C]) Reserved(d *algo.Decision, share float64) bool {
	return share > 0 && d.Limit > 0 && p.InForce(d) && float64(d.Remaining) < share*float64(d.Limit)
}

// denied classifies a denial. A client that has left does not see it; a
// deadline that has passed is no reason to hide it.
func (a *Attempt) denied(ctx context.Context) Result {
	if err := ctx.Err(); err != nil && errors.Is(err, context.Canceled) {
		a.Err = err
		return Canceled
	}
	return Denied
}

// elapse subtracts a delay that has been slept from the waits of d.
func elapse(d *algo.Decision, slept time.Duration) {
	if slept > 0 {
		d.NextAfter = max(d.NextAfter-slept, 0)
		d.ResetAfter = max(d.ResetAfter-slept, 0)
	}
}

// deny turns an admission with a delay, which has been given back, into a
// denial.
func deny(d *algo.Decision, delay time.Duration) {
	d.Allowed, d.Reason, d.Cause, d.RetryAfter = false, algo.Quota, cause.Deadline, delay
	d.NextAfter = min(d.NextAfter, delay) // the charge is no longer before it
}

// Report calls the observer, if there is one. method is the full method of a
// call of gRPC, status the status of the answer, sent its fields and waits.
func (p *Policy[C]) Report(a *Attempt, r Result, d *algo.Decision, method string, status int, sent telemetry.Sent) {
	if p.Observe != nil {
		p.report(a, r, d, method, status, sent)
	}
}
