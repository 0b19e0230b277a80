package guard

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// FailuresOnly charges l only for work that fails, against guessed passwords and scans. It peeks before the
// work and charges after it.
//
//	perAddress := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerMinute(5))))
//	login = httpmw.Limit(perAddress, keyfunc.ClientIP())(login)
//
// It admits a request whose cost fits l at that moment. A release with the result [algo.Failed] charges the
// cost to the limit that was peeked, whether it still fits or not; on Redis this takes another call.
// [algo.Succeeded] and [algo.Canceled] charge nothing. The adapters report statuses below 400 and the code
// OK as Succeeded, and other answers, panics, and clients that leave before a status as Failed. A denial
// further in is Canceled, unless a writer without Unwrap or an interceptor that returns another error hides
// it. Their option WithRefundIf names the answers that are no failure.
//
// Bound: over a token bucket, at most Burst + rate*(w + MaxWait) - n + c failures in any window of length
// w, where n is the cost of a request and c the most units of a key in flight at once, at most Burst. It
// admits all of an attacker's simultaneous requests: put a limit on requests in flight per key before it,
// in one decision (docs/guides/login.md).
//
// l must state the remaining units and charge a lease of cost 0 when it is settled, as the limits over time
// of packages algo and distributed do; if it states no Limit, FailuresOnly denies nothing. Put [NewBan]
// around FailuresOnly: inside, it never bans, because a peek is no offence. FailuresOnly panics if l is
// nil.
func FailuresOnly(l algo.Limiter) algo.Limiter {
	if l == nil {
		panic("guard: FailuresOnly: the limiter is nil")
	}
	return &failuresOnly{l}
}

type failuresOnly struct{ limiter algo.Limiter }

// Unwrap returns the limiter.
func (f *failuresOnly) Unwrap() []algo.Limiter { return []algo.Limiter{f.limiter} }

// About describes the limiter, with NeedsRelease: the outcome of the work decides the charge.
func (f *failuresOnly) About() algo.Description {
	d := algo.About(f.limiter)
	d.NeedsRelease = true
	return d
}

// Acquire peeks whether n units fit; Release charges them if the work fails.
func (f *failuresOnly) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	if n < 0 {
		return algo.Lease{}, fmt.Errorf("%w: n is %d, want 0 or more", algo.ErrCost, n)
	}
	l, err := algo.Resolve(ctx, f.limiter, key) // charge the limit that was peeked
	if err != nil {
		return algo.Lease{}, err
	}
	look, err := l.Acquire(ctx, key, 0)
	if err != nil {
		return algo.Lease{}, err
	}
	d := look.Decision
	if full(&d, n) {
		d, err = algo.Peek(ctx, l, key, n)
	}
	if err != nil || !d.Allowed {
		look.Release(algo.Canceled)
		return algo.Lease{Decision: d}, err
	}
	return algo.NewLease(d, &failureCharge{look}, algo.Handle{Key: key, N: n}), nil
}

// Peek answers as Acquire does.
func (f *failuresOnly) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	d, err := algo.Peek(ctx, f.limiter, key, 0)
	if err == nil && full(&d, n) {
		d, err = algo.Peek(ctx, f.limiter, key, n)
	}
	return d, err
}

// full reports whether n units do not fit, by the peek d.
func full(d *algo.Decision, n int64) bool { return d.Allowed && d.InForce() && d.Remaining < n }

// failureCharge charges a failure to the lease of cost 0 from the peek.
type failureCharge struct{ look algo.Lease }

// Release charges the cost if the work has failed.
func (c *failureCharge) Release(h algo.Handle, o algo.Outcome) {
	if o.Result() == algo.Failed {
		c.look.Settle(h.N)
	}
	c.look.Release(o)
}

// Settle does nothing: the lease keeps the cost.
func (*failureCharge) Settle(algo.Handle, int64) {}
