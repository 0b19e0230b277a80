package rate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
)

// InfDuration is the Delay of a reservation that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Reservation is tokens that are taken for events at a later time.
type Reservation struct {
	ok        bool
	lim       *Limiter
	tokens    int
	timeToAct time.Time
	limit     Limit // when they were taken
}

// Reserve is ReserveN(time.Now(), 1).
func (lim *Limiter) Reserve() *Reservation { return lim.ReserveN(time.Now(), 1) }

// ReserveN takes n tokens for events that happen after the Delay.
func (lim *Limiter) ReserveN(t time.Time, n int) *Reservation {
	r := lim.reserveN(t, n, InfDuration)
	return &r
}

// reserveN takes n tokens at t if they are there within longest.
func (lim *Limiter) reserveN(t time.Time, n int, longest time.Duration) Reservation {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	r := Reservation{lim: lim, limit: lim.limit}
	if lim.limit == Inf {
		r.ok, r.tokens, r.timeToAct = true, n, t
		return r
	}
	debt := lim.debt(t)
	next, a, _ := lim.bucket.Answer(debt, 0, int64(max(n, 0)))
	if p := lim.bucket.Params(); n <= 0 { // which the engine does not know: it waits for those before it
		next = max(debt+int64(n)*p.Emission, 0)
		a.Delay = max(next-p.Depth, 0)
	}
	delay := decide.Nanoseconds.Duration(a.Delay)
	if n > lim.burst || !a.Allowed || delay > longest {
		return r
	}
	r.ok, r.tokens, r.timeToAct = true, n, t.Add(delay)
	lim.tokens, lim.last, lim.lastEvent = lim.bucket.Params().Depth-next, t, r.timeToAct
	return r
}

// OK reports whether the tokens were taken: n was not above the burst.
func (r *Reservation) OK() bool { return r.ok }

// Delay is DelayFrom(time.Now()).
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is the time from t until the events may happen; InfDuration if the reservation is not OK.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	return max(r.timeToAct.Sub(t), 0)
}

// Cancel is CancelAt(time.Now()).
func (r *Reservation) Cancel() { r.CancelAt(time.Now()) }

// CancelAt gives the tokens of events that will not happen back, except those that later
// reservations have waited for.
func (r *Reservation) CancelAt(t time.Time) {
	if !r.ok {
		return
	}
	lim := r.lim
	lim.mu.Lock()
	defer lim.mu.Unlock()
	later := float64(r.limit) * lim.lastEvent.Sub(r.timeToAct).Seconds()
	back := float64(r.tokens) - later
	if lim.limit == Inf || r.tokens == 0 || back <= 0 || r.timeToAct.Before(t) {
		return
	}
	lim.tokens = lim.bucket.Params().Depth - max(lim.debt(t)-int64(back*lim.emission()), 0)
	lim.last = t
	if before := r.timeToAct.Add(-r.limit.duration(r.tokens)); r.timeToAct.Equal(lim.lastEvent) && !before.Before(t) {
		lim.lastEvent = before
	}
}

// duration is the time in which n tokens come.
func (limit Limit) duration(n int) time.Duration {
	return time.Duration(min(float64(n)/float64(limit), decide.MaxSpan.Seconds()) * float64(time.Second))
}

// Wait is WaitN(ctx, 1).
func (lim *Limiter) Wait(ctx context.Context) error { return lim.WaitN(ctx, 1) }

// WaitN takes n tokens and sleeps until they are there. The error says that n is above the burst,
// that they come after the deadline of ctx, or that ctx has ended; nothing is taken then.
func (lim *Limiter) WaitN(ctx context.Context, n int) error {
	return lim.wait(ctx, n, time.Now(), func(d time.Duration) (<-chan time.Time, func() bool, func()) {
		t := time.NewTimer(d)
		return t.C, t.Stop, func() {}
	})
}

// wait is WaitN at t. newTimer starts a timer and returns its channel and functions that stop it
// and, in tests, let its time pass.
func (lim *Limiter) wait(ctx context.Context, n int, t time.Time, newTimer func(time.Duration) (<-chan time.Time, func() bool, func())) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	longest := InfDuration
	if deadline, ok := ctx.Deadline(); ok {
		longest = deadline.Sub(t)
	}
	r := lim.reserveN(t, n, longest)
	switch delay := r.DelayFrom(t); {
	case !r.ok && n > lim.Burst():
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, lim.Burst())
	case !r.ok:
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", n)
	case delay > 0:
		timer, stop, pass := newTimer(delay)
		defer stop()
		pass()
		select {
		case <-timer:
		case <-ctx.Done():
			r.Cancel()
			return ctx.Err()
		}
	}
	return nil
}
