package distributed

import (
	"fmt"
	"math/rand/v2"

	"github.com/sluice-go/sluice/algo"
)

// SlidingLog makes a limit of r.Count units, 10000 at most, in any r.Period,
// exactly: it keeps the instant of every unit. The options [algo.MaxKeys] and
// [algo.OnFull] concern the decisions without Redis.
//
// Bound: at most Count units in any window of length Period. RetryAfter is
// exact, in microseconds.
//
// Do not use it for large quotas or costs: it takes about 120 bytes of Redis'
// memory for each unit and time in proportion to the cost. A TokenBucket of
// half the burst keeps a similar bound in one integer.
func (s *Store) SlidingLog(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	if err := fitsLog(r); err != nil { // before package algo says what it can hold
		return nil, fmt.Errorf("distributed: sliding log %q: %w", name, err)
	}
	return s.window("sliding log", "sliding-log", name, r, opts, newLog)
}

// mostHeld bounds the units of a set in Redis.
const mostHeld = 10_000

// unitLog is the units of the last period: held.lua.
type unitLog struct {
	limit  int64
	length int64 // microseconds
	rate   algo.Rate
}

func newLog(a asked) (limit, error) {
	if err := validWindow(a.rate); err != nil {
		return nil, err
	}
	if err := fitsLog(a.rate); err != nil {
		return nil, err
	}
	return &unitLog{a.rate.Count, a.rate.Period.Microseconds(), a.rate}, nil
}

func fitsLog(r algo.Rate) error {
	if r.Count > mostHeld {
		return fmt.Errorf("rate: count is %d, want %d at most", r.Count, mostHeld)
	}
	return nil
}

// newID names units so that no two instances choose the same.
func newID() int64 { return rand.Int64() }

func (u *unitLog) script() *script { return heldScript }

func (u *unitLog) largest() int64 { return u.limit }

func (u *unitLog) acquire(n int64) args {
	if n > u.limit {
		n = 0
	}
	return args{opAcquire, u.length, u.limit, n, newID()}
}

func (u *unitLog) explain(d *algo.Decision, now int64, reply []int64, n int64) {
	admitted := explainHeld(d, u.limit, u.length, now, reply, n)
	verdict(d, n, u.limit, admitted, reply[2]-now)
	if reply[5] == flagBlocked && n > 0 && n <= u.limit {
		d.RetryAfter = d.ResetAfter
	}
}

// explainHeld reads what held.lua replies about units that are held for long.
func explainHeld(d *algo.Decision, limit, long, now int64, reply []int64, n int64) (admitted bool) {
	count, next, last, flag := reply[0], reply[1], reply[3], reply[5]
	admitted = reply[4] == 1
	if flag == flagBlocked {
		count, next = limit, last
	}
	if admitted && n > 0 && n <= limit {
		count, last = count+n, max(last, now+long)
	}
	d.Limit = limit
	d.Remaining = max(limit-count, 0)
	if count > 0 {
		d.NextAfter, d.ResetAfter = micros(next-now), micros(last-now)
	}
	return admitted
}

func (u *unitLog) remember(h *algo.Handle, e *entry) { h.State[0] = e.args[4] }

// refund takes the last of the charge's units out of the log.
func (u *unitLog) refund(h algo.Handle, n int64) args {
	n = min(n, h.N)
	return args{opRefund, 0, 0, n, h.State[0], h.N - n}
}

func (u *unitLog) owe(h algo.Handle, n int64) args {
	return args{opOwe, u.length, 2 * u.limit, min(n, u.limit), h.State[0], h.N}
}

func (u *unitLog) describe() algo.Description {
	return algo.Description{Quota: u.limit, Window: u.rate.Period}
}

func (u *unitLog) share(in instances) (allowance, bool) { return windowShare(u.rate, in) }

func (u *unitLog) local(a allowance, keyed []algo.Option) (stand, error) {
	l, err := algo.NewSlidingLog(a.rate, keyed...)
	return windowStand{l}, err
}
