// Package classic has limits that decide as well-known programs do, nginx and Guava, and a
// strict limit in one word of state. Each is a [algo.Spec] of an algorithm that package algo
// can parse: use them to keep the numbers of a limit that moves here. For new limits
// [algo.NewTokenBucket] says the same in plainer terms.
//
// All take [algo.MaxKeys] and [algo.DenyNew] too. The errors name the field and the invalid
// value.
package classic

import (
	"time"

	"github.com/sluice-go/sluice/algo"
)

// NewStrict makes a limiter that admits at most r.Count units in any window of length r.Period, and
// in the long run only r.Count-burst+1 a period: about half of the rate with the burst of the text
// form. Its state is that of a token bucket: one word a key, swapped without a lock.
//
// It is a token bucket (the generic cell rate algorithm, ITU-T I.371) whose burst
// B and refill are chosen so that together they never exceed the quota N: any
// window of length W admits no more than B + floor(W/T) units, so T is the
// shortest interval for which this bound is N for one period. burst is B, 1 to N: with N the whole
// quota may come at once and then one unit a period, with 1 units are spaced
// evenly and nothing of the rate is lost. Half of the quota, rounded up, is what the text
// form takes if it has no burst: half of it may come at once, and half of it plus one unit
// passes in the long run.
//
// Bound: at most the quota in any window of length period, whatever the clock
// readings and however many goroutines. T is a period and a nanosecond divided
// by N-B+1.
//
// Do not use it where callers expect the whole quota both at once and in the
// long run: no limit with so little state has both. [algo.NewSlidingLog] has, and
// [algo.NewSlidingWindow] with [algo.Cells] nearly.
func NewStrict(r algo.Rate, burst int64, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "strict", Rate: r}.New(with(opts, algo.Burst(burst))...)
}

// NewNginx makes a limiter that decides as nginx's limit_req does:
//
//	limit_req zone=... rate=2r/s burst=5 [delay=n | nodelay];
//
// Requests at the rate are admitted without an excess; burst units, 0 or more, may come in
// excess of it. Up to delay of them start at once, the others are
// admitted with a Delay that spaces them at the rate, and requests beyond
// burst are denied. A delay of burst or more is nodelay. Only admissions are charged. As in
// nginx the first request of an idle key is no excess yet, so burst + 1 fit at once: at 2 a
// second with burst 5, seven requests at one instant get delays of 0, 0.5, 1, 1.5, 2
// and 2.5 s and one denial.
//
// nginx counts in thousandths of a request and whole milliseconds; this limiter
// counts in 1/64 ns, so a Delay may differ by up to 1 ms from nginx's.
//
// Bound: in any window of length w at most burst + 1 + rate*w units are
// admitted, and with delays at most delay + 1 + rate*w start (n + rate*w
// if the largest cost n is more), for any clock readings and any number of
// goroutines, and both with delays as long as no admission is canceled or
// settled to less while later ones wait. RetryAfter is exact.
//
// Remaining is the number of units that could start at once, Limit is
// delay + 1, or burst + 1 if that is less.
//
// Source: the documentation of ngx_http_limit_req_module.
func NewNginx(r algo.Rate, burst, delay int64, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "nginx", Rate: r, DelayAfter: delay}.New(with(opts, algo.Burst(burst))...)
}

// NewSmoothBursty makes a limiter that lets every request start as soon as the debt of earlier
// ones has drained; its own cost delays the requests after it. It is Guava's
// RateLimiter.create(rate).
//
// An idle limiter saves permits, one second's worth, or as many as [algo.Burst] sets.
// A request of n permits takes saved ones first; the permits beyond them do not
// delay the request itself but the next one. So a request waits only for the
// debt of earlier requests, and a request of any size starts at once when there
// is no debt. maxWait is the longest wait of a request:
//
//	Guava's tryAcquire(n)          0
//	Guava's tryAcquire(n, timeout) timeout
//	Guava's acquire(n)             algo.Forever
//	a cache of ratio x             x times one second
//
// The Delay of an admission is the time for which the caller has to sleep, as
// acquire would. As in Guava nothing is saved at first: saving begins when the
// limiter is made, for all keys alike.
//
// Bound: in any window of length w at most B + rate*w + n units start, B being
// the saved permits and n the largest cost, for any clock readings and any
// number of goroutines, as long as no admission is canceled or settled to less
// while later ones wait. RetryAfter is exact. Costs above a year's worth are
// denied with reason Never.
//
// The savings are kept as time, so SetRate leaves debts unchanged and scales
// the saved permits, and their maximum, with the rate. Remaining is the number
// of single permits that could start at once, one more than are saved when
// there is no debt; Limit is its maximum.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent.
//
// Do not use it where callers choose the cost: a request for a million permits
// starts at once, and delays all later requests. Bound n where it comes from,
// or use [algo.NewTokenBucket], where every request waits for its own cost.
func NewSmoothBursty(r algo.Rate, maxWait time.Duration, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "smooth-bursty", Rate: r}.New(with(opts, algo.MaxWait(maxWait))...)
}

// NewSmoothWarmingUp makes a limiter that gets faster while it is used and cold
// again when it is not, for services that need time to reach full speed
// (caches to fill, connections to open). It is Guava's
// RateLimiter.create(rate, warmup).
//
// Cold, a permit costs cold times its cost at the rate more than 1 and at most 1e6 (0
// stands for Guava's factor of 3); over the warm-up the cost falls to the cost at the rate, and an idle limiter is cold
// again after one warm-up. It starts cold. As with [NewSmoothBursty] a request
// waits only for the debt of earlier requests, at most maxWait, and its own
// debt delays the next one. A warm-up of 0 makes it a smooth bursty limiter
// that saves one second's worth; the longest is half a year, and so is
// a maxWait of [algo.Forever] here.
//
// Bound: in any window of length w at most rate*w + n permits start, n being the
// largest cost, for any clock readings and any number of goroutines, as long as no
// admission is canceled or settled to less while later ones wait. RetryAfter is
// exact. Costs above 2^31 - 1, or above half a year of the rate, are denied with
// reason Never.
//
// SetRate scales the stored permits with their maximum, so a limiter that was half warm
// stays half warm, and leaves debts unchanged. Limit is 1: Remaining is 0 while there is
// debt.
//
// Source: Guava's SmoothRateLimiter, com.google.common.util.concurrent, with
// time in 1/64 ns (microseconds run 4 % fast at 80 000 a second).
//
// Do not use it where arrivals at the rate must never be denied: while it is
// cold they are. See also [NewSmoothBursty] about costs that callers choose.
func NewSmoothWarmingUp(r algo.Rate, warmup time.Duration, cold float64, maxWait time.Duration, opts ...algo.Option) (*algo.RateLimiter, error) {
	s := algo.Spec{Algorithm: "smooth-warming-up", Rate: r, Warmup: warmup, ColdFactor: cold}
	return s.New(with(opts, algo.MaxWait(maxWait))...)
}

// with returns opts and one more.
func with(opts []algo.Option, more algo.Option) []algo.Option {
	return append([]algo.Option{more}, opts...)
}
