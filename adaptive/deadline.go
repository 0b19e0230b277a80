package adaptive

import (
	"context"
	"time"
)

// late reports whether the request must be denied because it is likely to end after ctx's deadline.
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

// trial admits one late request a second after another was denied. The estimate may be too long,
// and only work that runs can correct it.
func (d *durations) trial(at int64) bool {
	since := d.lateSince.Load()
	if since == 0 {
		d.lateSince.CompareAndSwap(0, at)
		return false
	}
	return at-since >= int64(time.Second) && d.lateSince.CompareAndSwap(since, 0)
}

// expected returns the shortest time that n units are likely to take: the wait in the queue, if
// there is one, and the duration of recent fast requests.
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

// unknownRetry is the retry estimate until the first work completes.
const unknownRetry = time.Second

// retryEstimate returns when units of inFlight are likely to have ended, if each takes mean
// nanoseconds: by Little's law, inFlight/mean units end per nanosecond.
func retryEstimate(mean, inFlight, units int64) time.Duration {
	if mean == 0 {
		return unknownRetry
	}
	share := float64(max(units, 1)) / float64(max(inFlight, 1))
	return time.Duration(min(float64(mean)*share, float64(time.Hour))) + 1
}
