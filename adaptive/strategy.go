package adaptive

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// Strategy sets the concurrency limit of a [Limiter] and learns from completed
// work.
//
// Both methods are called concurrently and must not block: Limit once per request,
// Observe once per sample. A strategy belongs to one limiter, because its state
// describes one service: [New] rejects a strategy of this package that is already
// in use.
//
// The constructors of this package return a Strategy. [New] reports their invalid
// options; until then an invalid strategy has the limit 1. Most of them follow admissions,
// ends and denials too, by unexported methods that a type around them hides: a strategy of
// your own that embeds [Default] for its log limits nothing. Combine them with [Min].
type Strategy interface {
	// Limit is the largest number of units in flight. The limiter reads a value
	// below 1 as 1, because a limit of 0 would end all learning.
	Limit() int
	// Observe takes in one sample: a success, or a failure that took at least as
	// long as a success usually does. Canceled and untimed work and fast failures
	// are not samples.
	Observe(Sample)
}

// Sample is one completed piece of work.
type Sample struct {
	// RTT is the time from admission to release, above 0.
	RTT time.Duration
	// End is the instant of the release on a monotonic clock, 0 for the present.
	// The origin is arbitrary: only differences between samples have a meaning.
	End time.Duration
	// InFlight is the number of units in flight at the admission, with its own.
	InFlight int
	// Outcome is algo.Succeeded or algo.Failed.
	Outcome algo.Outcome
}

// end is the instant of the release.
func (s *Sample) end(m machine.Machine) int64 {
	if s.End == 0 {
		return m.Now()
	}
	return int64(s.End)
}

func failed(s Sample) bool { return s.Outcome != algo.Succeeded }

// learningFloor is the number of requests in flight below which no strategy learns
// that there are too many, on up to as many processors: ten requests that hang, or
// some slow ones beside a handful of others, are no overload.
const learningFloor = 20

// noLimit is the limit of a strategy that sees no reason for one.
const noLimit = math.MaxInt32

// follower is a strategy that follows all work, with or without a sample.
//
// inFlight is the number of units in flight, without work that waits for its
// client.
type follower interface {
	// admitted follows the admission of n units; inFlight includes them.
	admitted(at, n, inFlight int64)
	// finished follows the end of work after rtt, with any outcome; inFlight is the rest.
	finished(at, rtt, inFlight int64, o algo.Outcome)
	// denied follows a denial of n units. at is 0 if the instant is not known; it then reads
	// the clock only if it must, because a denial should cost next to nothing.
	denied(by cause, at, n, inFlight int64)
}

var _, _, _, _, _ follower = (*bbr)(nil), (*kratos)(nil), (*minimum)(nil), (*runQueue)(nil), (*sojourn)(nil)

// gate is a strategy that decides about each request by the state of the machine,
// before the limit is looked at.
type gate interface {
	// admits reports whether a request may try for a slot.
	admits(at int64) bool
	// full reports whether a request would be denied. A denial counts as an
	// arrival, because the caller then denies the request.
	full() bool
	// weigh counts the arrival of a denied request as so many usual ones.
	weigh(usual int64)
	// slack is the amount that may pass in addition to the requests that it admits,
	// if others are denied for it soon: a number of usual requests, and service in
	// nanoseconds.
	slack() (requests, service int64)
	// empty reports whether nothing waited at the last reading.
	empty() bool
}

// bounded is a strategy that knows the largest value that Limit ever has.
type bounded interface{ maxLimit() int }

func maxLimit(s Strategy) int {
	if b, ok := s.(bounded); ok {
		return b.maxLimit()
	}
	return noLimit
}

// checker is a strategy, queue or signal with an error for its constructor to
// report.
type checker interface{ check() error }

func check(v any) error {
	if c, ok := v.(checker); ok {
		return c.check()
	}
	return nil
}

// invalid is the result of a constructor with invalid options.
type invalid struct{ err error }

func (invalid) Limit() int     { return 1 }
func (invalid) Observe(Sample) {}
func (i invalid) check() error { return i.err }

// owned marks a strategy that belongs to a limiter. Strategies embed it.
type owned struct{ taken atomic.Bool }

func (o *owned) take() bool { return o.taken.CompareAndSwap(false, true) }
func (o *owned) giveBack()  { o.taken.Store(false) }

type ownable interface {
	take() bool
	giveBack()
}

var errTaken = errors.New("strategy is already in use; make one strategy per limiter")
