package adaptive

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// Peek returns the current answer of Acquire for a request without deadline, class and tenant, and
// takes no slot; see [algo.Peeker]. A request that would wait in a queue is denied.
func (l *Limiter) Peek(_ context.Context, _ string, n int64) (d algo.Decision, err error) {
	n = l.slots(n)
	look, err := l.exceptional(min(n, 0))
	d = look.Decision
	switch idle := l.working(l.inFlight.Load()) == 0; {
	case err != nil || n == 0:
	case n > l.max:
		d.Allowed, d.Reason, d.RetryAfter = false, algo.Never, algo.Forever
	case n <= d.Remaining || idle && d.Remaining > 0: // an idle limiter admits any cost
		d.Remaining = max(d.Remaining-n, 0)
	default:
		c := cause.Processor // denied by a gate
		if d.Allowed = false; n > d.Limit-l.working(l.inFlight.Load()) {
			c = l.blame(d.Limit)
		}
		l.explainDenial(&d, n, c, d.Limit)
	}
	return d, err
}

func (l *Limiter) explainDenial(d *algo.Decision, n int64, c algo.Cause, limit int64) {
	inFlight, mean, ahead := l.working(l.inFlight.Load()), l.mean.Load(), int64(0)
	if l.queue != nil {
		ahead = l.queue.length.Load()
	}
	d.Reason, d.Cause, d.Limit, d.Remaining = algo.Overload, c, limit, max(limit-inFlight, 0)
	d.RetryAfter = retryEstimate(mean, inFlight, inFlight+n+ahead-limit)
	d.NextAfter, d.ResetAfter = d.RetryAfter, max(d.RetryAfter, retryEstimate(mean, inFlight, inFlight))
}
