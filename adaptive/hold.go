package adaptive

import (
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

// Constants of a limit in force, each with its cell of bench/sim/pools.
const (
	leavesBelow   = 0.12       // share of denied arrivals at which a limit ends: .85x after an overload
	holdLasts     = 0.2        // s, at least
	holdFell      = 0.8        // of the limit before, at which their effects are compared: connections 5 times as slow
	holdSound     = 0.8        // of the ends that are successes, else their times mean little: half hang
	holdPatience  = 2.0        // targets, without enough ends: hang 10s
	holdPaces     = 3.0        // times that what fits should take, without enough ends: slower 20 to 400ms
	holdHarm      = 0.4        // of the ends without a limit, below which it did harm: half hang, cache hits
	holdDoubts    = 30.0       // ends too few in all, after which a limit took the rate along: TestLongOverload
	holdKnown     = 3000.0     // successes so far, below which fewer doubts will do: TestDefaultWithSlowWork
	drainCollapse = 0.2        // of the rate of ends, at which a limit did harm: 100 polls
	leastPause    = int64(1e9) // ns, after a limit that did harm, and
	longestPause  = int64(30e9)
)

// hold is a limit in force.
type hold struct {
	cause    algo.Cause // None: no limit
	limit    float64
	at       int64 // instant of the limit; once drained, from which the work in flight is within it
	drained  bool
	woke     bool                         // work that began since a hang has succeeded
	seen     counts                       // since at
	was      float64                      // work in flight, or the limit, to compare with:
	good     float64                      // successes per second then
	rate     float64                      // ends per second then
	ends     float64                      // counted for these rates; 0: they are of the sign
	mean     float64                      // time of successes then, s; 0: too few for a comparison
	before   struct{ good, rate float64 } // without the limit
	needless bool                         // nothing waited at first
}

// begin puts a limit in force.
func (s *sojourn) begin(at int64, limit float64) {
	h := &s.hold
	h.limit, h.at, h.drained, h.seen = max(limit, sojournLeast, float64(s.wanted.Load())), at, false, counts{}
	if h.cause != cause.Hang { // after which each probe counts
		s.since.Store(math.MaxInt64)
	}
}

// govern judges the limit in force.
func (s *sojourn) govern(at int64, n float64, c counts) {
	h := &s.hold
	h.seen.add(c)
	if h.cause == cause.Hang && c.fresh > 0 && !h.woke { // new work succeeds, so what still hangs is no queue, but lost
		h.woke = true
		s.standing.Reset(at, n+s.standing.Value())
		return
	}
	if h.drained {
		s.judge(at)
		return
	}
	took := float64(at-h.at) / 1e9
	expected := took * h.rate
	switch {
	case n < h.limit+1: // the limit in force is rounded up
		if h.seen.ended >= rateEnds && h.ends == 0 {
			h.good, h.rate, h.ends = h.seen.good/took, h.seen.ended/took, h.seen.ended
			h.before.good, h.before.rate = h.good, h.rate
		}
		h.drained, h.at, h.seen = true, at, counts{}
		if h.cause != cause.Hang {
			s.since.Store(at)
		}
	case h.cause != cause.Hang && took >= bearTarget*s.target && expected >= 2*rateEnds && h.seen.ended < drainCollapse*expected:
		s.standing.Reset(at, n+s.standing.Value()) // the denied work would not have waited for it
		s.harm(at)
	case h.seen.ended > 0 && at-h.at > standingSpan && n > h.was/2: // what drains is a queue
		s.standing.Reset(at, n+s.standing.Value())
		s.begin(at, h.limit)
	}
}

// judge ends the limit, or sets the next one, once enough has ended within it.
func (s *sojourn) judge(at int64) {
	h := &s.hold
	took := float64(at-h.at) / 1e9
	mean := h.seen.lasted / max(h.seen.fresh, 1) / 1e9
	enough := h.seen.ended >= rateEnds && h.seen.fresh >= usualFirst
	if took < max(holdLasts, s.goal(), 2*mean) || !enough && took < s.patience() {
		return
	}
	good, rate, fell := h.seen.good/took, h.seen.ended/took, h.limit <= holdFell*h.was
	sound, half := enough && good >= holdSound*rate, (1+h.limit/h.was)/2
	doubt := s.doubts(fell && sound, good, mean, half)
	switch {
	case h.seen.turned < leavesBelow*(h.seen.turned+h.seen.began):
		if h.needless {
			s.harm(at)
			return
		}
		s.free()
		s.pause = 0
	case doubt > 0 && s.doubt < holdDoubts*min(s.pace.known/holdKnown, 1): // it may be chance
		s.begin(at, h.was)
	case doubt > 0:
		s.doubt = 0
		s.pace.set(max(mean, h.limit/rate)) // the limit took the rate along: nothing waited, work is slow by nature
		h.needless = true
		s.begin(at, h.was)
	case (fell || h.limit <= sojournLeast) && h.cause != cause.Hang && good <= holdHarm*h.before.good && rate <= holdHarm*h.before.rate:
		s.harm(at)
	default:
		if fell || h.limit >= h.was {
			h.compare(good, rate, mean, sound)
		}
		s.begin(at, s.pace.slow*s.goal())
	}
}

// patience is how long a limit waits for enough ends, s.
func (s *sojourn) patience() float64 {
	if s.hold.cause == cause.Hang {
		return holdPatience * s.target
	}
	return max(holdPatience*s.target, holdPaces*s.takes(s.hold.limit))
}

// compare makes this window the one that the next are compared with.
func (h *hold) compare(good, rate, mean float64, sound bool) {
	h.was, h.good, h.rate, h.ends, h.mean = h.limit, good, rate, h.seen.ended, 0
	if sound {
		h.mean = mean
	}
}

// doubts is above 0 if within a lower limit so little ends, or work takes so long, as if nothing had
// waited. In one window of uneven work that may be chance: the sum counts.
func (s *sojourn) doubts(comparable bool, good, mean, half float64) float64 {
	h := &s.hold
	if !comparable || h.good == 0 {
		return 0
	}
	doubt := half - good/h.good
	if h.mean > 0 {
		doubt = max(doubt, mean/h.mean-half)
	}
	s.doubt = max(s.doubt+2/(1/max(h.ends, rateEnds)+1/h.seen.ended)*doubt, 0)
	return doubt
}

// harm ends a limit that denied work which would not have waited.
func (s *sojourn) harm(at int64) {
	s.pause = min(max(2*s.pause, leastPause), longestPause)
	s.until = at + s.pause
	s.free()
}

func (s *sojourn) free() {
	s.hold, s.sign = hold{}, sign{}
	s.since.Store(math.MaxInt64)
}
