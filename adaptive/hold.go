package adaptive

import (
	"fmt"
	"math"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
)

const (
	sojournFew   = 20           // too few in flight to judge: TestDefaultBelowCapacity
	sojournLeast = 4            // lowest limit
	signTarget   = 0.6          // of the patience, below which work shows no sign: 4 workers, exponential 50 ms
	lateTarget   = 0.8          // of the patience: answers are about to be late
	signLasts    = 0.1          // s, before a limit: bursts of .2 s
	signGrows    = 0.04         // s, while more and more is in flight: 60 x 300ms
	signUnclear  = 1.0          // s, if nothing was calm lately: 300 ms, 100 a second
	signGrew     = 1.2          // of the work in flight before, which is growing
	knownAfter   = int64(2e8)   // ns after a silence, when the rate is known: bursts of .2 s
	judgeEnds    = 15           // ends within a target, too few to tell a queue from slow work: 3 s, 20 a second
	trialTo      = 0.6          // of the work in flight, for a limit that tests whether work queues
	calmLasts    = int64(60e9)  // ns, for which an overload after a calm is a queue
	holdLasts    = 0.2          // s, of a window, at least
	turnLasts    = 2.0          // s, of a window that waits until what was in flight has ended, at most: half of 2 s
	leavesBelow  = 0.12         // share of denied arrivals at which a limit ends: .85x after an overload
	collapsed    = 0.08         // of the rate of ends, at which nothing that is in flight will end soon: cache hits
	natureGrows  = 1.4          // of a limit, while work is slow by nature
	slowGrows    = 1.5          // growth of slow work, in flight or in time, that is tolerated
	slowFalls    = 0.5          // of the time before a limit, that slow work takes within it
	leastTrust   = int64(60e9)  // ns, for which work is believed to be slow by nature: half of 2 s
	mostTrust    = int64(300e9) // ns, as it doubles each time that a limit shows it again
)

// sign records since when new work would take too long.
type sign struct {
	since int64   // instant; 0: it would not
	began float64 // work in flight then
}

// hold is a limit in force, with the window in which it is judged.
type hold struct {
	cause   algo.Cause // None: no limit
	limit   float64
	took    float64  // time of work before the limit, s
	before  windowed // the second before the limit, or the first window
	rate    float64  // ends per second before the limit
	queued  bool     // work queued before the limit
	fresh   bool     // the work in flight has fallen to a limit
	woke    bool     // work admitted since has succeeded, in a hang or before the rest drained
	natural float64  // time of work that is slow by nature, s; 0: it is not
	at      int64    // begin of the window
	seen    counts   // since then
	area    float64  // integral of the work in flight since then
}

// slow records an assumption: work takes longer than half of the target by nature.
type slow struct {
	takes float64 // s
	until int64   // instant
	trust int64   // ns
}

// watch sets a limit once new work would take too long for long enough.
func (s *sojourn) watch(at int64, n float64) {
	p, g := &s.pace, &s.sign
	hangs, w := p.hangs(at, s.target), p.takes()
	silent := p.silent(at) || float64(at-p.lastTimed)/1e9 > s.target/2
	if n <= sojournFew || p.fit.one < rateEnds && p.left < leftFew || s.takes(n) <= signTarget*s.patience ||
		!silent && w < signTarget*s.patience && n < signGrew*p.slowN {
		*g = sign{}
		return
	}
	if g.since == 0 {
		*g = sign{max(at, p.woke+knownAfter), n}
	}
	v := s.verdict(w)
	calm := at-s.calmAt <= calmLasts
	wait := signLasts
	switch {
	case hangs:
		wait = 0
	case v == unclear && !calm:
		wait = signUnclear
	case n >= signGrew*g.began && p.slow >= p.rate/2: // not after a pause
		wait = signGrows
	}
	if float64(at-g.since)/1e9 < wait || !hangs && (silent || s.bears(at, n, w, v)) {
		return
	}
	s.hold = hold{cause: cause.Latency, took: w, rate: p.slow, queued: v == queues}
	if n <= signGrew*p.slowN {
		s.hold.before = windowed{p.slowN, p.slow, p.slow * slowMemory}
	}
	limit := p.serves() * bearTarget * s.patience
	switch {
	case hangs:
		s.hold.cause, limit = cause.Hang, 0
	case v == byNature, v == unclear && !calm:
		limit = max(limit, trialTo*n)
	}
	s.since.Store(at + 1)
	s.begin(at, limit)
}

// bears reports whether the limiter tolerates work that takes w: because it does so by nature, or
// because the cause is unclear and nothing is late or grows, or other work is as quick as ever.
func (s *sojourn) bears(at int64, n, w float64, v verdict) bool {
	p, b, mean := &s.pace, &s.slow, s.pace.fit.mean()
	switch {
	case v == byNature && (w < s.patience || mean < calmTarget*s.patience && !p.leaves()), s.few(v, p.slow):
		return true
	case v == queues:
		return false
	case at < b.until && !p.leaves() && w < slowGrows*b.takes*(1+2/math.Sqrt(p.slow)):
		return true
	}
	return mean > 0 && mean < calmTarget*s.patience && n < signGrew*p.slowN ||
		w < lateTarget*s.patience && n < 1.5*p.longN+2*math.Sqrt(p.longN)
}

// begin puts limit in force and opens a window.
func (s *sojourn) begin(at int64, limit float64) {
	h := &s.hold
	h.limit, h.at, h.seen, h.area = max(limit, sojournLeast, float64(s.wanted.Load())), at, counts{}, 0
}

// govern follows the limit in force and judges it at the end of a window.
func (s *sojourn) govern(at int64, n, dt float64, c counts) {
	h := &s.hold
	h.seen.began, h.seen.turned, h.seen.ended = h.seen.began+c.began, h.seen.turned+c.turned, h.seen.ended+c.ended
	h.seen.good, h.seen.left = h.seen.good+c.good, h.seen.left+c.left
	h.area += n * dt
	took, drains := float64(at-h.at)/1e9, n > h.limit+1 // the limit in force is rounded up
	switch {
	case h.seen.good > 0 && !h.woke && (h.cause == cause.Hang || !h.fresh && drains): // work from before the limit is no queue
		h.woke = true
		s.standing.Reset(at, n+s.standing.Value())
		s.begin(at, h.limit)
	case drains && at-h.at < standingSpan:
		s.drains(at, n, took)
	case !h.fresh:
		h.fresh = true
		if h.cause != cause.Hang { // after a hang each probe counts
			s.since.Store(at)
		}
		s.pace.forget()
		s.begin(at, h.limit)
	case h.seen.ended*took < h.area && took < turnLasts: // some of the work in flight began before the window
	case took < max(holdLasts, bearTarget*s.patience), h.seen.ended < rateEnds && took < max(2*s.target, 1):
	default:
		s.judge(at, n, took)
	}
}

// drains follows the work in flight until it has fallen to the limit.
func (s *sojourn) drains(at int64, n, took float64) {
	h := &s.hold
	switch {
	case h.cause == cause.Hang:
	case s.verdict(s.takes(n)) == byNature:
		s.begin(at, slowGrows*n)
	case !h.queued && !s.pace.hangs(at, s.target) && took > s.target/2 && took*h.rate > 2*rateEnds && h.seen.ended < collapsed*took*h.rate:
		s.standing.Reset(at, n+s.standing.Value()) // the denied work would not have waited for standing work
		s.free("what is in flight is no queue")
	}
}

// judge ends the limit, or sets the next one.
func (s *sojourn) judge(at int64, n, took float64) {
	h := &s.hold
	w, window := s.takes(n), windowed{max(h.area/took, 0.5), h.seen.ended / took, h.seen.ended}
	v := s.verdict(w)
	e, err := window.follows(h.before, s.pace.fit.uneven())
	follows := e > naturePart && e < followMost
	slow := w > 1.2*bearTarget*s.patience
	switch {
	case h.seen.turned < leavesBelow*(h.seen.turned+h.seen.began) && n < h.limit-1 && (w < s.patience || h.natural > 0):
		if h.natural > 0 && (e > naturePart || err == unknownErr) {
			s.believe(at, h.natural)
		}
		s.free(fmt.Sprintf("%.0f %% of the arrivals found no slot", 100*h.seen.turned/max(h.seen.turned+h.seen.began, 1)))
	case h.seen.ended == 0 || s.pace.hangs(at, s.target) || h.cause == cause.Hang && h.seen.good == 0: // nothing is known
		s.begin(at, h.limit)
	case h.cause == cause.Latency && (s.few(v, window.rate) && (!h.queued || slow) || slow && follows && e-2*err > naturePart):
		if follows {
			s.believe(at, w)
		}
		s.free(fmt.Sprintf("work takes %.3g s by nature", w))
	default:
		h.cause = cause.Latency
		limit := max(s.pace.serves(), window.rate-h.seen.left/took, window.rate/2) * bearTarget * s.patience
		switch {
		case v == byNature && slow:
			h.natural, limit = w, slowGrows*n
		case v == byNature:
			limit *= natureGrows
		}
		if h.before.n == 0 {
			h.before = window
		}
		s.begin(at, limit)
	}
}

// believe assumes for a while that work takes w by nature, unless it queues, clients leave, or the
// limit changed its time.
func (s *sojourn) believe(at int64, w float64) {
	b := &s.slow
	if w < slowFalls*s.hold.took || w > 3*max(s.pace.lasts(), s.patience) || s.pace.leaves() || s.verdict(w) == queues {
		return
	}
	if at-b.until > mostTrust/3 {
		b.trust = 0
	}
	b.trust = min(max(2*b.trust, leastTrust), mostTrust)
	b.until, b.takes = at+b.trust, max(w, s.hold.took)
}
