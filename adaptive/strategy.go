package adaptive

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/wiring"
)

// Strategy sets the concurrency limit of a [Limiter] and learns from completed work.
//
// Both methods are called concurrently and must not block: Limit at least once per request, Observe
// once per sample. A strategy belongs to one limiter, because its state describes one service:
// [New] rejects a strategy of this package, or of package adaptive/strategy, that is already in
// use.
//
// A strategy that needs more than samples is also a [Follower]; one that decides about each
// request, a [Gate]. Explain shows the result of a method State() [State], and a cost above that of
// a method MaxLimit() int is denied with the reason Never. A type around a strategy, such as one
// that logs [Default], hides the methods that it does not forward. Combine strategies with [Min].
//
// The constructors of this package return a Strategy. [New] reports their invalid options; until
// then an invalid strategy has the limit 1.
type Strategy interface {
	// Limit returns the largest number of units in flight. The limiter reads a value below 1 as 1,
	// because a limit of 0 would end all learning.
	Limit() int
	// Observe takes in one sample: a success, or a failure that took at least as
	// long as a success usually does. Canceled and untimed work and fast failures
	// are not samples; a strategy with a method ObserveFastFailure(Sample) gets these too.
	Observe(Sample)
}

// Sample is one completed piece of work.
type Sample struct {
	// RTT is the time from admission to release, above 0.
	RTT time.Duration
	// End is the instant of the release on a monotonic clock, or 0 for now. Its origin is arbitrary:
	// only differences between samples matter.
	End time.Duration
	// InFlight is the number of units in flight at the admission, with its own.
	InFlight int
	// Outcome is algo.Succeeded or algo.Failed.
	Outcome algo.Outcome
}

// Follower is a strategy that follows all work, with or without a sample. It counts requests: if
// every strategy of a limiter is a Follower, a cost above 1 takes one slot.
//
// Its methods are called concurrently and must not block. at is the time since an origin that does
// not change. inFlight is the number of units in flight, without work that waits for its client.
type Follower interface {
	Strategy
	// Admitted follows the admission of n units; inFlight includes them.
	Admitted(at time.Duration, n, inFlight int64)
	// Finished follows the end of work, with any outcome; inFlight is the rest.
	Finished(s Sample, inFlight int64)
	// Denied follows the denial of n units that passed every gate and found no slot. n is 0 after a
	// peek, whose caller then denies a request.
	Denied(at time.Duration, n, inFlight int64, c algo.Cause)
}

// Gate is a strategy that decides about each request by the state of the machine, before the limit
// applies.
type Gate interface {
	Strategy
	// Admits reports whether a request that arrives may try for a slot.
	Admits(at time.Duration) bool
	// Full reports whether a request would be denied. If so it counts as an arrival, because
	// the caller then denies the request.
	Full() bool
}

const noLimit = wiring.NoLimit

// maxLimit returns the largest limit that s ever has.
func maxLimit(s Strategy) int {
	if b, ok := s.(interface{ MaxLimit() int }); ok {
		return b.MaxLimit()
	}
	return noLimit
}

type invalid struct{ err error }

func (invalid) Limit() int     { return 1 }
func (invalid) Observe(Sample) {}
func (i invalid) Check() error { return i.err }
