// Package classic has the limits of nginx and Guava, and a strict limit in one word of state.
// Package algo parses each as an [algo.Spec]. Use them to keep the numbers of a limit that moves
// here; for new limits [algo.NewTokenBucket] is plainer.
//
// All take [algo.MaxKeys] and [algo.DenyNew] too. The errors name the field and the invalid value.
package classic

import (
	"time"

	"github.com/sluice-go/sluice/algo"
)

// NewStrict makes a limiter that admits at most r.Count units in any window of length r.Period, in one
// word a key. burst, 1 to r.Count, units may come at once, and in the long run r.Count-burst+1 pass in
// a period. The text form has half of the quota as the default burst.
//
// Bound: at most the quota N in any window of length period. It is a token bucket (the generic cell
// rate algorithm, ITU-T I.371) of burst B and an interval of a period and a nanosecond divided by
// N-B+1, so that burst and refill together never exceed N.
//
// Do not use it where callers expect the whole quota both at once and in the long run: see
// [algo.NewSlidingLog], and [algo.NewSlidingWindow] with [algo.Cells].
func NewStrict(r algo.Rate, burst int64, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "strict", Rate: r}.New(with(opts, algo.Burst(burst))...)
}

// NewNginx makes a limiter that decides as nginx's limit_req does:
//
//	limit_req zone=... rate=2r/s burst=5 [delay=n | nodelay];
//
// Requests at the rate are admitted; burst units, 0 or more, may come in excess of it. Up to delay of
// them start at once, the others with a Delay that spaces them at the rate, and requests beyond burst
// are denied. A delay of burst or more is nodelay. The first request of an idle key is no excess, so
// burst + 1 fit at once. nginx counts in whole milliseconds: a Delay may differ by up to 1 ms.
//
// Bound: in any window of length w at most burst + 1 + rate*w units are admitted, and with delays at
// most delay + 1 + rate*w start (n + rate*w if the largest cost n is more), with delays as long as no
// admission is canceled or settled to less while later ones wait. RetryAfter is exact.
//
// Remaining is the number of units that could start at once, Limit is delay + 1, or burst + 1 if that is
// less. Source: the documentation of ngx_http_limit_req_module.
func NewNginx(r algo.Rate, burst, delay int64, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "nginx", Rate: r, DelayAfter: delay}.New(with(opts, algo.Burst(burst))...)
}

// NewSmoothBursty makes a limiter that lets every request start as soon as the debt of earlier ones has
// drained; its own cost delays the requests after it. It is Guava's RateLimiter.create(rate).
//
// An idle limiter saves permits, one second's worth, or as many as [algo.Burst] sets, and nothing at
// first; a request takes saved ones first. maxWait is the longest wait of a request: 0 for Guava's
// tryAcquire(n), timeout for tryAcquire(n, timeout), [algo.Forever] for acquire(n), x seconds for a
// cache of ratio x. The Delay of an admission is the time for which acquire would sleep.
//
// Bound: in any window of length w at most B + rate*w + n units start, B being the saved permits and n
// the largest cost, as long as no admission is canceled or settled to less while later ones wait.
// RetryAfter is exact. Costs above a year's worth are denied with reason Never.
//
// SetRate leaves debts unchanged and scales the saved permits. Remaining is the number of single permits
// that could start at once, one more than are saved when there is no debt.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent.
//
// Do not use it where callers choose the cost: a request for a million permits starts at once, and
// delays all later requests.
func NewSmoothBursty(r algo.Rate, maxWait time.Duration, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "smooth-bursty", Rate: r}.New(with(opts, algo.MaxWait(maxWait))...)
}

// NewSmoothWarmingUp makes a limiter that gets faster while it is used and cold again when it is not,
// for services that need time to reach full speed. It is Guava's RateLimiter.create(rate, warmup).
//
// Cold, a permit costs cold times its cost at the rate, more than 1 and at most 1e6 (0: 3, as Guava);
// over the warm-up, 0 to half a year, the cost falls to the cost at the rate, and an idle limiter is
// cold again after one warm-up. It starts cold. As with [NewSmoothBursty] a request waits only for the
// debt of earlier requests, at most maxWait, of which [algo.Forever] is half a year here. With a
// warm-up of 0 it is a NewSmoothBursty that saves one second's worth.
//
// Bound: in any window of length w at most rate*w + n permits start, n being the largest cost, as long
// as no admission is canceled or settled to less while later ones wait. RetryAfter is exact. Costs above
// 2^31 - 1, or above half a year of the rate, are denied with reason Never.
//
// SetRate scales the stored permits with their maximum, and leaves debts unchanged. Limit is 1:
// Remaining is 0 while there is debt. On Redis it is the smooth-warming-up of Store.Limiter in package distributed.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent, with time in 1/64 ns.
//
// Do not use it where arrivals at the rate must never be denied: while it is cold they are.
func NewSmoothWarmingUp(r algo.Rate, warmup time.Duration, cold float64, maxWait time.Duration, opts ...algo.Option) (*algo.RateLimiter, error) {
	s := algo.Spec{Algorithm: "smooth-warming-up", Rate: r, Warmup: warmup, ColdFactor: cold}
	return s.New(with(opts, algo.MaxWait(maxWait))...)
}

// with returns opts and one more.
func with(opts []algo.Option, more algo.Option) []algo.Option {
	return append([]algo.Option{more}, opts...)
}
