package algo

import "context"

// FailuresOnly charges l for work that fails, and for no other: against guessed
// passwords and scans. It looks before the work, and charges after it.
//
//	perAddress := algo.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerMinute(5))))
//	login = httpmw.Limit(perAddress, keyfunc.ClientIP())(login)
//
// A request is admitted if its cost fits l at that moment. Its cost is charged when the
// lease is released with the result [Failed], which on Redis takes another call: as any
// cost if it fits, and as debt of l if it does not fit any more. With [Succeeded] and
// [Canceled] nothing is charged, however long the work took. The adapters report statuses
// below 400 and the code OK as Succeeded, and other answers, panics, and clients that have
// gone before there was a status as Failed; their option WithRefundIf names the answers
// that are no failure:
//
//	httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized })
//
// So any number of successes may be in flight at once, which they may not under a
// limit that charges first and refunds.
//
// Bound: over a token bucket, at most Burst + rate*(w + MaxWait) - n + c failures in any
// window of length w, where n is the cost of a request and c the most units of a key
// in flight at once, at most Burst: the failures that are in flight when the last
// request is admitted. Without such a limit the requests that an attacker sends at
// once are all admitted, and cost at most another Burst of waiting: put a limit on
// requests in flight per key before it, in one decision:
//
//	httpmw.Limits([]httpmw.Policy{{Limiter: inFlight, ...}, {Limiter: perAddress, ...}})
//
// l has to state the remaining units, and to charge a lease of cost 0 when it is settled,
// as the limits over time of this package and of package distributed do; a limiter
// that states no Limit is never asked to deny. [NewBan] around FailuresOnly bans
// keys that go on when they are denied, and not keys that succeed. It panics if l
// is nil.
func FailuresOnly(l Limiter) Limiter {
	mustLimiter(l, "FailuresOnly")
	return &failuresOnly{wrapping{l}}
}

type failuresOnly struct{ wrapping }

// OccupiesSlot reports true: how the work ends has to be known.
func (*failuresOnly) OccupiesSlot() bool { return true }

// Acquire looks whether n units fit.
func (f *failuresOnly) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	if n < 0 {
		return Lease{}, costError(n)
	}
	charge := &failureCharge{limiter: f.limiter}
	var err error
	charge.lease, err = f.limiter.Acquire(ctx, key, 0)
	if err != nil {
		return Lease{}, err
	}
	d := charge.lease.Decision
	if f.full(&d, n) {
		d, err = peek(ctx, f.limiter, key, n)
	}
	if err != nil || !d.Allowed || n == 0 {
		charge.lease.Release(Canceled)
		return Lease{Decision: d}, err
	}
	return NewLease(d, charge, Handle{Key: key, N: n}), nil
}

// peekThrough answers as Acquire does.
func (f *failuresOnly) peekThrough(ctx context.Context, key string, n int64) (Decision, error) {
	d, err := peek(ctx, f.limiter, key, 0)
	if err == nil && f.full(&d, n) {
		d, err = peek(ctx, f.limiter, key, n)
	}
	return d, err
}

// full reports whether n units do not fit, by the peek d.
func (*failuresOnly) full(d *Decision, n int64) bool {
	return d.Allowed && d.InForce() && d.Remaining < n
}

// failureCharge charges a failure.
type failureCharge struct {
	limiter Limiter
	lease   Lease // of cost 0, which the look has left
}

// Release charges the cost if the work has failed.
func (c *failureCharge) Release(h Handle, o Outcome) {
	if o.Result() == Failed && !c.acquired(h) {
		c.lease.Settle(h.N)
	}
	c.lease.Release(o)
}

// acquired charges the cost as any other, where it fits: to credits too, for example. A
// failure that does not fit is no denial that a ban may count.
func (c *failureCharge) acquired(h Handle) bool {
	ctx := context.Background()
	if _, denies := denialCounts(ctx, c.limiter, h.Key, h.N); denies {
		return false
	}
	lease, err := c.limiter.Acquire(ctx, h.Key, h.N)
	if err != nil || !lease.Allowed {
		return false
	}
	if lease.Delay > 0 {
		lease.Release(Canceled)
		return false
	}
	lease.Release(Succeeded)
	return true
}

// Settle does nothing: the lease remembers the cost.
func (*failureCharge) Settle(Handle, int64) {}
