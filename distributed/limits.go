package distributed

import (
	"time"

	"github.com/sluice-go/sluice/algo"
)

// TokenBucket makes a limit that admits bursts and holds the rate over time,
// with the options [algo.Burst] (default: the rate's count), [algo.MaxWait],
// and, for the decisions without Redis, [algo.MaxKeys] and [algo.DenyNew]; see
// [algo.NewTokenBucket]. The name identifies the limit; instances that use the same
// name share it.
//
// Bound: in any window of length w all instances together admit at most
// Burst + rate*w units, plus rate*MaxWait, whatever their clocks: time is the
// server's. If the server's clock steps back, a key is denied for at most one
// burst longer.
//
// With MaxWait and no other bound it is the distributed form of Guava's
// RateLimiter: tryAcquire(timeout) is a MaxWait of timeout, acquire() one of
// [algo.Forever].
//
// Accuracy: time is counted in whole microseconds, rounded so that the limit
// is never faster than its rate: at most 1 % slower below 1e4 per second, 10 %
// below 1e5. Rates range from 1 in a year to 1e6 per second.
//
// Do not use it where every instance can have a limit of its own: a decision
// costs a round trip.
func (s *Store) TokenBucket(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("token-bucket", name, r, opts)
}

// LeakyBucket makes a limit as a meter: each unit fills the bucket of Burst
// units (default: the rate's count), which leaks at the rate; a unit that would
// overflow it is denied. It is the dual of TokenBucket, without MaxWait, and has
// its bound and accuracy.
func (s *Store) LeakyBucket(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("leaky-bucket", name, r, opts)
}

// Pacer makes a limit as a queue: units that come too early are admitted with a
// Delay, so that the units of a key start evenly spaced, over all instances.
// The options are [algo.Slack] and [algo.MaxWait], with the field MaxQueue of
// [algo.Spec], as for [algo.NewPacer]: without either of the last two the queue holds the units that
// the rate admits in one Period.
//
// Bound: at most Slack + 1 + rate*w units start in any window of length w, as
// long as no admission is canceled, or settled to less, while later ones wait.
// The network adds its own jitter to the starts.
//
// Do not use it where a delayed request holds a scarce resource while it waits.
func (s *Store) Pacer(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("pacer", name, r, opts)
}

// FixedWindow makes a limit of r.Count units in each r.Period. The windows
// follow one another from the Unix epoch, by the server's clock; see
// Offset, AlignedTo and Spread of [algo.Spec] for others. With [algo.Zone]
// they are days, weeks, months or quarters of the calendar. All instances need the
// same version of the tz database, and a clock that is at most one window wrong: a
// client whose clock is further away counts in windows of its own. Instances whose windows
// differ are reported as [MixedParameters]; the last one to charge a key decides when its window
// ends. The options [algo.MaxKeys] and [algo.DenyNew] concern the decisions without Redis.
//
// Bound: at most Count units in each of these windows, and at most 2*Count in any time that
// is no longer than a window and lies across an edge. A denial does not count. Units that
// are given back while the window lasts can be spent again in it; units settled above the
// quota are debt in the next window. RetryAfter is exact, in microseconds. A changed quota
// applies at once; with a changed period the units of the window that has not ended count in
// the new one, at most all of its quota.
//
// Do not use it where the burst at an edge hurts; see SlidingWindow.
func (s *Store) FixedWindow(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("fixed-window", name, r, opts)
}

// SlidingWindow makes a limit of r.Count units in r.Period over two counters:
// the count of the period before weighs by the share of it that the sliding
// window still covers, rounded up. The options [algo.MaxKeys] and [algo.DenyNew]
// concern the decisions without Redis; it does not take [algo.Cells].
//
// Bound: fewer than 2*Count units in any window of length Period, as it assumes
// that the units of the period before were spread evenly; in traffic without a
// pattern, Count. State is three integers, whatever the Count. RetryAfter is
// exact, in microseconds.
//
// Count times Period in microseconds must stay below 2^53: at most 104249 in a
// day.
//
// Do not use it where the bound must hold in every window; see SlidingLog.
func (s *Store) SlidingWindow(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("sliding-window", name, r, opts)
}

// SlidingLog makes a limit of r.Count units, at most 10000, in any r.Period,
// exactly: it keeps the instant of every unit. The options [algo.MaxKeys] and
// [algo.DenyNew] concern the decisions without Redis.
//
// Bound: at most Count units in any window of length Period. RetryAfter is
// exact, in microseconds.
//
// Do not use it for large quotas: it takes about 120 bytes of Redis's memory for each
// admission that counts, whatever its cost. A TokenBucket of
// half the burst keeps a similar bound in one integer.
func (s *Store) SlidingLog(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.newLimiter("sliding-log", name, r, opts)
}

// InFlight makes a limit of n units in flight at the same time, 1 to 10000,
// for each key and over all instances. A lease holds its units until Release, and those of an
// instance that is gone are held for expiry, 1 s to 1 h. The store renews a lease three times as
// often, until its Release, so work may last as long as it likes.
// Its denials have the Reason [algo.Quota], and [algo.Overload] for the empty key, which all
// callers share.
//
// Bound: at most n units in flight, as long as Redis keeps its data, its clock does not step by
// the expiry and every instance reaches it once in each expiry. Otherwise each instance puts back
// what is missing with the next renewal, and after an outage before it acquires more; what others
// acquire in between comes on top, until it is released. Releases wait for Redis
// while it is away, so all units are free within two probe intervals of its return; those that
// are lost (see [Stats]) free their units at the expiry. While Redis is away each instance admits up to its
// part of n, at least one unit, less its units in flight, and one request alone of whatever
// cost: N instances together at most max(n, N), or N times the largest cost.
//
// Do not use it as a lock: an instance that stalls for longer than the expiry
// goes on with units that others may hold. Do not use it for the capacity of a
// single instance; see the package adaptive.
func (s *Store) InFlight(name string, n int, expiry time.Duration) (*Limiter, error) {
	l, err := s.prepare("in-flight limit", name)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxUnits {
		return nil, l.errorf("n is %d, want 1 to %d", n, maxUnits)
	}
	if err := within("expiry", expiry, time.Second, time.Hour); err != nil {
		return nil, l.errorf("%w", err)
	}
	f := inFlight{limit: int64(n), expiry: expiry}
	l.slots = &slots{limiter: l, expiry: expiry, mark: f.mark(), counts: map[string]int64{}, remote: map[int64]algo.Handle{}}
	f.slots = l.slots
	l.replace(&f)
	return s.register(l)
}
