package algo

import "github.com/sluice-go/sluice/internal/decide"

// NewPacer makes the leaky bucket as a queue: it admits requests that come too early with a Delay, so
// that work starts T = period/count apart. A request of n units takes n places in the queue.
//
// The options are [Slack] (default 0), [MaxWait], [MaxKeys] and [DenyNew]; the field MaxQueue of [Spec]
// bounds the units that wait. A request beyond the queue is denied with the exact RetryAfter. Without
// MaxWait and MaxQueue the queue holds the units of one period; of both the tighter one decides. The
// error names the field and the invalid value.
//
// Bound: without slack a request of n units starts n*T after the one before it at the earliest; with
// Slack(k) at most k + 1 + rate*w units start in any window of length w, or n + rate*w if the largest
// cost n is more than k + 1, as long as no admission is canceled, or settled to less, while later ones
// wait. A canceled request leaves its time to later requests; those that wait keep their starts.
//
// Remaining is the number of units that could start at once, Limit is Slack + 1.
//
// Source: the leaky bucket as a queue, A. Tanenbaum, "Computer Networks"; go.uber.org/ratelimit.
//
// Do not use it where a delayed request holds something scarce, or where bursts are harmless.
func NewPacer(r Rate, opts ...Option) (*RateLimiter, error) {
	return pacer.construct(Spec{Rate: r}, opts)
}

var pacer = kind{"pacer", "pacer", []string{"Slack", "MaxWait", "MaxQueue", "MaxKeys", "DenyNew"}, bucket{paced, false}}

// paced makes a bucket of Slack + 1 units, and a queue.
func paced(s Spec, _ Rate) (*decide.GCRA, error) {
	queue, wait := s.MaxQueue, s.MaxWait
	if !s.Given("queue") {
		queue = decide.Unbounded
	}
	switch {
	case s.Given("wait"):
	case s.Given("queue"):
		wait = decide.Unbounded
	default:
		wait = max(s.Rate.Period, 0)
	}
	return decide.NewPacer(s.Rate.local(), s.Slack, queue, wait)
}
