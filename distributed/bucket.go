package distributed

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// TokenBucket makes a limit that admits bursts and holds the rate over time,
// with the options [algo.Burst] (default: the rate's count), [algo.MaxWait],
// and, for the decisions without Redis, [algo.MaxKeys] and [algo.OnFull]; see
// [algo.TokenBucket]. The name tells limits apart; instances that use the same
// one share the limit.
//
// Bound: in any window of length w all instances together admit at most
// Burst + rate*w units, plus rate*MaxWait, whatever their clocks: time is the
// server's. Should the server's clock step back, a key is denied for one burst
// longer at most.
//
// With MaxWait and no other bound it is the distributed form of Guava's
// RateLimiter: tryAcquire(timeout) is a MaxWait of timeout, acquire() one of
// [algo.Forever].
//
// Accuracy: time is counted in whole microseconds, rounded so that the limit
// is never faster than asked: by at most 1 % slower below 1e4 per second and
// 10 % below 1e5. Rates go from 1 in a year to 1e6 per second.
//
// Do not use it where every instance can be given a limit of its own: a
// decision costs a round trip.
func (s *Store) TokenBucket(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	a, err := resolve("token-bucket", r, opts, "Burst", "MaxWait")
	return s.bucket("token bucket", name, a, err, func(a asked) (limit, error) {
		return asLimit(newGCRA(a.rate, a.theBurst(), a.maxWait))
	})
}

// LeakyBucket makes a limit as a meter: each unit fills the bucket of Burst
// units (default: the rate's count), which leaks at the rate, and what would
// overflow is denied. It is the TokenBucket told from the other side, without
// MaxWait, and has its bound and accuracy.
func (s *Store) LeakyBucket(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	a, err := resolve("leaky-bucket", r, opts, "Burst")
	return s.bucket("leaky bucket", name, a, err, func(a asked) (limit, error) {
		return asLimit(newGCRA(a.rate, a.theBurst(), 0))
	})
}

// Pacer makes a limit as a queue: what comes too early is admitted with a
// Delay, so that the units of a key start evenly spaced, over all instances.
// The options are [algo.Slack], [algo.MaxWait] and [algo.MaxQueue], as for
// [algo.Pacer]: without either of the last two the line holds what the rate
// lets through in one Period.
//
// Bound: at most Slack + 1 + rate*w units start in any window of length w, as
// long as no admission is canceled, or settled to less, while later ones wait.
// The network adds its own jitter to the starts.
//
// Do not use it where a delayed request holds something scarce while it waits.
func (s *Store) Pacer(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	a, err := resolve("pacer", r, opts, "Slack", "MaxWait", "MaxQueue")
	a.noBurst = true
	return s.bucket("pacer", name, a, err, newPacer)
}

func newPacer(a asked) (limit, error) {
	if err := validRate(a.rate); err != nil {
		return nil, err
	}
	most := int64(maxSpan/time.Microsecond) / emission(a.rate)
	if a.slack >= most || a.queue > most {
		return nil, fmt.Errorf("slack is %d and max queue is %d, want %d at most at %v", a.slack, a.queue, most, a.rate)
	}
	wait := a.rate.Period
	queue := time.Duration(a.queue*emission(a.rate)) * time.Microsecond
	switch {
	case a.waitSet && a.queueSet:
		wait = min(a.maxWait, queue)
	case a.waitSet:
		wait = a.maxWait
	case a.queueSet:
		wait = queue
	}
	return asLimit(newGCRA(a.rate, a.slack+1, wait))
}

// bucket makes a limiter of a kind that bucket.lua decides.
func (s *Store) bucket(kind, name string, a asked, err error, build func(asked) (limit, error)) (*Limiter, error) {
	if err != nil {
		return nil, fmt.Errorf("distributed: %s %q: %w", kind, name, err)
	}
	return s.newLimiter(kind, name, a, build)
}

// asLimit keeps a nil pointer from becoming a limit that is not nil.
func asLimit[L limit](l L, err error) (limit, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
