package adaptive

import (
	"context"
	"time"
)

// late reports whether a request is denied because it is expected to end after the deadline
// of ctx.
func (l *Limiter) late(ctx context.Context, n int64) (bool, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return false, ctx.Err()
	}
	if left := time.Until(deadline); left <= 0 || left < l.expected(n) && !l.trial(l.machine.Now()) {
		return true, nil
	}
	return false, ctx.Err()
}

// trial reports whether a late request is begun nevertheless: one, a second after another
// was denied. The expectation may be too long, and only work that is begun can correct it.
func (d *durations) trial(at int64) bool {
	since := d.lateSince.Load()
	if since == 0 {
		d.lateSince.CompareAndSwap(0, at)
		return false
	}
	return at-since >= int64(time.Second) && d.lateSince.CompareAndSwap(since, 0)
}

// expected is the least time that n units are likely to take: the duration of
// recent fast ones, after the wait in the queue if there is one.
func (l *Limiter) expected(n int64) time.Duration {
	fastest := time.Duration(l.fastest.Load())
	if l.queue == nil {
		return fastest
	}
	inFlight, mean := l.working(l.inFlight.Load()), l.mean.Load()
	lacking := inFlight + n + l.queue.length.Load() - l.limit()
	if lacking <= 0 || mean == 0 {
		return fastest
	}
	return fastest + retryEstimate(mean, inFlight, lacking)
}

// unknownRetry is the retry estimate until work has completed.
const unknownRetry = time.Second

// retryEstimate is the expected time until units of inFlight have ended, when each
// takes mean nanoseconds: by Little's law they end at the rate inFlight/mean.
func retryEstimate(mean, inFlight, units int64) time.Duration {
	if mean == 0 {
		return unknownRetry
	}
	share := float64(max(units, 1)) / float64(max(inFlight, 1))
	return time.Duration(min(float64(mean)*share, float64(time.Hour))) + 1
}
