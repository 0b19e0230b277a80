package admission

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const (
	// defaultWait is the wait asked for where a limiter denies without one, and
	// after a failure.
	defaultWait = time.Second
	// maxJitter bounds the time added to a wait, next to a fifth of it.
	maxJitter = 5 * time.Second
	// maxRefill bounds the time added to a wait until the quota is back.
	maxRefill = time.Second
	// DoNotRetry is the pushback for no further attempt.
	DoNotRetry = -1
)

// waitFor is the wait after the denial d. Without one from the limiter, clients
// must not come back at once.
func waitFor(d *algo.Decision) time.Duration {
	switch {
	case d.Reason == algo.Never:
		return algo.Forever
	case d.RetryAfter <= 0:
		return defaultWait
	}
	return d.RetryAfter
}

// TimeLeft is the time until the deadline of ctx, algo.Forever without one.
func TimeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return algo.Forever
}

// Jitter spreads waits, so that a herd of clients with the same wait dissolves: by
// up to 20 %, at most 5 s, or up to the reset at which the whole quota is back, at
// most 1 s, whichever is more. Until then nothing of the quota is lost. It never
// goes beyond left, and only upward: a client that came back earlier would be
// denied again. random is in [0, 1).
func Jitter(wait, reset, left time.Duration, random float64) time.Duration {
	spread := max(min(wait/5, maxJitter), min(reset-wait, maxRefill))
	return wait + time.Duration(random*float64(min(spread, left-wait)))
}

// Milliseconds and Seconds round up: no client may come back too early.
func Milliseconds(d time.Duration) int64 { return in(time.Millisecond, d) }

// Seconds rounds up.
func Seconds(d time.Duration) int64 { return in(time.Second, d) }

func in(unit, d time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
