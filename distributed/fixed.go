package distributed

import (
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// FixedWindow makes a limit of r.Count units in each r.Period. A window of a
// key begins with the first unit that is charged to it, so the windows of
// different keys do not end at the same instant. The options [algo.MaxKeys] and
// [algo.OnFull] concern the decisions without Redis.
//
// Bound: at most Count units in each window of a key, and 2*Count in any
// window of that length that lies across two of them. A denial does not count.
// RetryAfter is exact, in microseconds.
//
// Do not use it where the burst at the edge hurts; see SlidingWindow.
func (s *Store) FixedWindow(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.window("fixed window", "fixed-window", name, r, opts, newFixed)
}

// fixed is a count, and the instant at which it starts again: fixedwindow.lua.
type fixed struct {
	limit  int64
	length int64 // microseconds
	rate   algo.Rate
}

func newFixed(a asked) (limit, error) {
	if err := validWindow(a.rate); err != nil {
		return nil, err
	}
	return &fixed{a.rate.Count, a.rate.Period.Microseconds(), a.rate}, nil
}

// window makes a limiter of a kind without a burst.
func (s *Store) window(kind, algorithm, name string, r algo.Rate, opts []algo.Option, build func(asked) (limit, error)) (*Limiter, error) {
	a, err := resolve(algorithm, r, opts)
	if err != nil {
		return nil, fmt.Errorf("distributed: %s %q: %w", kind, name, err)
	}
	a.noBurst = true
	return s.newLimiter(kind, name, a, build)
}

// validWindow checks a quota in a period of whole microseconds, such that their
// product is exact in a script's numbers.
func validWindow(r algo.Rate) error {
	us := r.Period.Microseconds()
	switch {
	case r.Count <= 0:
		return fmt.Errorf("rate: count is %d, want 1 or more", r.Count)
	case us <= 0 || r.Period > maxSpan:
		return fmt.Errorf("rate: period is %v, want 1µs to %v", r.Period, maxSpan)
	case r.Count > exact/us:
		return fmt.Errorf("rate: count is %d, want %d at most in %v", r.Count, exact/us, r.Period)
	}
	return nil
}

// exact is the largest integer up to which a script's numbers have no gaps.
const exact = 1<<53 - 1

func (f *fixed) script() *script { return fixedScript }

func (f *fixed) largest() int64 { return f.limit }

func (f *fixed) acquire(n int64) args {
	if n > f.limit {
		n = 0
	}
	return args{opAcquire, f.length, f.limit, n}
}

func (f *fixed) explain(d *algo.Decision, now int64, reply []int64, n int64) {
	ends, count, admitted, flag := reply[0], reply[1], reply[2] == 1, reply[3]
	if admitted && n <= f.limit {
		count += n
	}
	d.Limit = f.limit
	d.Remaining = max(f.limit-count, 0)
	if flag == flagBlocked {
		d.Remaining = 0
	}
	if d.Remaining < f.limit {
		d.NextAfter, d.ResetAfter = micros(ends-now), micros(ends-now)
	}
	verdict(d, n, f.limit, admitted, ends-now)
}

// verdict writes what windows have in common: us is the RetryAfter.
func verdict(d *algo.Decision, n, most int64, admitted bool, us int64) {
	switch {
	case n > most:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	case n == 0 || admitted:
		d.Allowed = true
	default:
		d.Reason, d.RetryAfter = algo.Quota, micros(us)
	}
}

func (f *fixed) remember(h *algo.Handle, e *entry) { h.State[0] = e.reply[0] }

func (f *fixed) refund(h algo.Handle, n int64) args {
	return args{opRefund, min(n, h.N), h.State[0]}
}

func (f *fixed) owe(_ algo.Handle, n int64) args {
	return args{opOwe, f.length, 2 * f.limit, min(n, f.limit)}
}

func (f *fixed) describe() algo.Description {
	return algo.Description{Quota: f.limit, Window: f.rate.Period}
}

func (f *fixed) share(in instances) (allowance, bool) { return windowShare(f.rate, in) }

// windowShare: one part of the quota in the same period.
func windowShare(r algo.Rate, in instances) (allowance, bool) {
	r.Count = in.part(r.Count)
	return allowance{rate: r}, r.Count > 0
}

func (f *fixed) local(a allowance, keyed []algo.Option) (stand, error) {
	l, err := algo.NewFixedWindow(a.rate, keyed...)
	return windowStand{l}, err
}
