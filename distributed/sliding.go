package distributed

import (
	"github.com/sluice-go/sluice/algo"
)

// SlidingWindow makes a limit of r.Count units in r.Period over two counters:
// the count of the last window weighs as much as the sliding one still covers
// of it, rounded up. The options [algo.MaxKeys] and
// [algo.OnFull] concern the decisions without Redis.
//
// Bound: an approximation, as it takes the last window's units to be spread
// evenly. In the worst window slightly less than 2*Count units are admitted; in
// traffic without a pattern, Count. State is three integers, whatever the
// Count. RetryAfter is exact, in microseconds.
//
// Count times Period in microseconds must stay below 2^53: at most 104249 in a
// day.
//
// Do not use it where the bound must hold in every window; see SlidingLog.
func (s *Store) SlidingWindow(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.window("sliding window", "sliding-window", name, r, opts, newSliding)
}

// sliding is two counters: slidingwindow.lua.
type sliding struct {
	limit  int64
	length int64 // microseconds
	rate   algo.Rate
}

func newSliding(a asked) (limit, error) {
	if err := validWindow(a.rate); err != nil {
		return nil, err
	}
	return &sliding{a.rate.Count, a.rate.Period.Microseconds(), a.rate}, nil
}

func (w *sliding) script() *script { return slidingScript }

func (w *sliding) largest() int64 { return w.limit }

func (w *sliding) acquire(n int64) args {
	if n > w.limit {
		n = 0
	}
	return args{opAcquire, w.length, w.limit, n}
}

func (w *sliding) explain(d *algo.Decision, now int64, reply []int64, n int64) {
	index, prev, curr, admitted, flag := reply[0], reply[1], reply[2], reply[3] == 1, reply[4]
	d.Limit = w.limit
	if flag == flagBlocked {
		d.NextAfter, d.ResetAfter = micros(index-now), micros(index-now)
		verdict(d, n, w.limit, false, index-now)
		return
	}
	elapsed := now - index*w.length
	if admitted && n <= w.limit {
		curr += n
	}
	d.Remaining = max(w.limit-w.weight(prev, elapsed)-curr, 0)
	d.NextAfter = micros(w.until(prev, curr, elapsed, d.Remaining+1))
	switch {
	case curr > 0:
		d.ResetAfter = micros(2*w.length - elapsed)
	case prev > 0:
		d.ResetAfter = micros(w.length - elapsed)
	default:
		d.NextAfter = 0
	}
	verdict(d, n, w.limit, admitted, w.until(prev, curr, elapsed, n))
}

// weight is what is left of the last window's count, rounded up.
func (w *sliding) weight(prev, elapsed int64) int64 {
	return (prev*(w.length-elapsed) + w.length - 1) / w.length
}

// until is how long it takes until n <= limit units fit, if nobody else spends.
func (w *sliding) until(prev, curr, elapsed, n int64) int64 {
	if n > w.limit {
		return 0
	}
	if room := w.limit - curr - n; room >= 0 {
		// The last window's count fades until it fits the room, at its end at
		// the latest.
		return max(w.fades(prev, room)-elapsed, 0)
	}
	// This window must become the last one, and fade.
	return w.length - elapsed + w.fades(curr, w.limit-n)
}

// fades is how far into a window the count of the one before weighs at most
// room.
func (w *sliding) fades(count, room int64) int64 {
	if count <= room {
		return 0
	}
	return w.length - room*w.length/count
}

func (w *sliding) remember(h *algo.Handle, e *entry) { h.State[0] = e.reply[0] }

func (w *sliding) refund(h algo.Handle, n int64) args {
	return args{opRefund, w.length, h.State[0], min(n, h.N)}
}

func (w *sliding) owe(_ algo.Handle, n int64) args {
	return args{opOwe, w.length, w.limit, min(n, w.limit)}
}

func (w *sliding) describe() algo.Description {
	return algo.Description{Quota: w.limit, Window: w.rate.Period}
}

func (w *sliding) share(in instances) (allowance, bool) { return windowShare(w.rate, in) }

func (w *sliding) local(a allowance, keyed []algo.Option) (stand, error) {
	l, err := algo.NewSlidingWindow(a.rate, keyed...)
	return windowStand{l}, err
}
