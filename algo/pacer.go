package algo

import "github.com/sluice-go/sluice/internal/decide"

// NewPacer makes the leaky bucket as a queue: requests that come too early are
// admitted with a Delay, so that work starts evenly spaced, T = period/count
// apart. It turns a burst into a flow, for a service or a peer that suffers
// from bursts.
//
// A request of n units takes n places in the line and waits for all of them.
// [Slack] lets late requests catch up by so many units. [MaxWait] bounds the
// longest Delay, and the field MaxQueue of [Spec] the number of units that wait; a request
// beyond it is denied, with the exact RetryAfter.
//
// Bound: without slack a request of n units starts n*T after the one before it at the
// earliest; with Slack(k) at most k + 1 + rate*w units start in any window of length w,
// or n + rate*w if the largest cost n is more than k + 1. Both hold for any clock
// readings and any number of goroutines, as long as no admission is canceled, or settled
// to less, while later ones wait. A canceled request gives all of its time back, so
// canceled waits do not delay later requests. Waits that were admitted after it keep
// their start times, so its gap in the line stays empty, and the next request starts
// together with the last of them instead of T later.
//
// Remaining is the number of units that could start at once, Limit is Slack +
// 1.
//
// Source: the leaky bucket as a queue, A. Tanenbaum, "Computer Networks";
// the pacing of go.uber.org/ratelimit, with the queue bounded.
//
// Do not use it where a delayed request holds something scarce (a connection,
// a lock) while it waits, or where bursts are harmless: every one of them is
// slowed down. Use [NewTokenBucket] there.
//
// The options are [Slack] (default 0), [MaxWait], [MaxKeys] and [DenyNew]. Without MaxWait and MaxQueue the line
// holds the units of one Period: 1 s at PerSecond(n), n units long. With only
// one of the two, that one decides; with both, the tighter one. The error names
// the field and the invalid value.
func NewPacer(r Rate, opts ...Option) (*RateLimiter, error) {
	return pacer.construct(Spec{Rate: r}, opts)
}

var pacer = kind{"pacer", "pacer", []string{"Slack", "MaxWait", "MaxQueue", "MaxKeys", "DenyNew"}, bucket(paced, false)}

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
