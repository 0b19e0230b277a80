package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/window"
	"github.com/sluice-go/sluice/internal/wiring"
)

// sojourn limits the work in flight while new work would take too long: n/r by Little's law, where n
// is in flight and r ends per second. That needs no success, no baseline and no patience of clients,
// and it leads the response times. See [Default].
type sojourn struct {
	wiring.Owned
	machine machine.Machine
	target  float64     // s
	busy    func() bool // work waits for the processor; for the text only

	limit atomic.Int64
	next  atomic.Int64  // instant of the next update
	cause atomic.Uint32 // of the limit in force, an algo.Cause
	late  atomic.Bool   // new work would take longer than the target
	since atomic.Int64  // instant from which the work in flight is within the limit; MaxInt64: it is not
	_     [64]byte      // every request writes the fields below
	counters
	wanted atomic.Int64 // slots of the last denied work
	probed atomic.Int64 // instant of the last probe
	_      [64]byte

	mu       sync.Mutex // guards the fields below
	pace     pace
	standing window.Lowest // work in flight for long, such as long polls
	lastEnd  int64         // instant
	woke     int64         // instant of the first end after a silence
	now      float64       // work in flight at the last update, without standing work
	sign     sign
	hold     hold
	doubt    float64 // sum of doubts
	pause    int64   // after a limit that did harm, ns
	until    int64   // end of the pause
}

// Each constant has the cell of bench/sim/pools, or the test, that fails without it.
const (
	sojournEvery = int64(5 * time.Millisecond)
	sojournFew   = 20         // in flight, too few to judge: TestDefaultBelowCapacity
	sojournLeast = 4          // lowest limit
	signLasts    = 0.1        // s, before a limit: bursts of .2 s
	signGrows    = 0.04       // s, while more and more is in flight: 60 x 300ms
	silence      = 0.1        // s without an end, after which the rate is known a little later: slower 20 to 400ms
	knownAfter   = int64(2e8) // ns after a silence, when the rate is known: bursts of .2 s
	probeEvery   = int64(1e9) // ns, while nothing ends: hang 10s
	idleEnds     = int64(1e9) // ns without arrivals and ends, which end a limit: TestDefaultAfterAPause
	signGrew     = 1.2        // of the work in flight at the first sign, which is growing: .3x to .9x with work of 150 ms
	bearTarget   = 0.5        // of the target, that new work may take without a limit: bursts of .2 s
	bearUsual    = 2.0        // usual times, that it may take: 60 x 300ms
	bearSlow     = 3.0        // the same for work of bearTarget and more, where n/r is uncertain: slow work of .3 s
	goalTarget   = 0.25       // of the target, that work may take under a limit: clients of .3 s
	goalUsual    = 4.0        // usual times, that it may take: 20 x 10ms with an SLO of 100 ms
	goalLeast    = 1.5        // usual times, at least: 60 x 300ms
)

// sign is the time since which new work would take too long.
type sign struct {
	since       int64 // instant; 0: it would not
	began, most float64
	ended       bool // some work
}

func newSojourn(m machine.Machine, target float64, busy func() bool) *sojourn {
	s := &sojourn{machine: m, target: target, busy: busy}
	s.limit.Store(noLimit)
	s.since.Store(math.MaxInt64)
	at := m.Now()
	s.pace.updated, s.pace.from, s.lastEnd = at, at, at
	return s
}

func (s *sojourn) Limit() int           { return int(s.limit.Load()) }
func (s *sojourn) Observe(Sample)       {}
func (s *sojourn) On(m machine.Machine) { s.machine = m }

func (s *sojourn) Admitted(at time.Duration, _, inFlight int64) {
	s.began.Add(1)
	s.update(int64(at), inFlight)
}

func (s *sojourn) Finished(at, rtt time.Duration, inFlight int64, o algo.Outcome) {
	if o.Result() == algo.Canceled {
		s.began.Add(-1)
		if int64(at-rtt) >= s.probed.Load() { // a probe has not begun: another one may
			s.probed.Store(0)
		}
	} else {
		s.pace.end(&s.counters, int64(at), int64(rtt), s.since.Load(), o)
	}
	s.update(int64(at), inFlight)
}

// Denied updates too: while every request is denied nothing else does.
func (s *sojourn) Denied(at time.Duration, n, inFlight int64, _ algo.Cause) {
	if n = max(n, 1); s.wanted.Load() != n {
		s.wanted.Store(n)
	}
	s.turned.Add(1)
	s.update(int64(at), inFlight)
}

// Cause is latency or hang while there is a limit.
func (s *sojourn) Cause() algo.Cause {
	if c := algo.Cause(s.cause.Load()); c != cause.None {
		return c
	}
	return cause.Limit
}

func (s *sojourn) update(at, inFlight int64) {
	if at < s.next.Load() || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.next.Store(at + sojournEvery)
	if at-s.pace.updated > idleEnds {
		s.free()
	}
	c := s.drain()
	n := max(float64(inFlight)-s.standing.Value(), 0)
	s.now = n
	free := s.hold.cause == cause.None
	s.pace.update(at, c, s.target, free, at < s.until, s.takes(n))
	if c.ended > 0 && (s.silent(at) || at-s.lastEnd > idleEnds) {
		s.woke = at
	}
	if c.ended > 0 {
		s.lastEnd = at
	}
	if free {
		s.watch(at, n, c)
	} else {
		s.govern(at, n, c)
	}
	s.cause.Store(uint32(s.hold.cause))
	s.late.Store(s.takes(n) > s.target)
	s.limit.Store(s.nextLimit(at, inFlight))
}

// takes is how long new work would take behind n, s.
func (s *sojourn) takes(n float64) float64 { return n / max(s.pace.rate, 1e-9) }

// silent reports whether nothing has ended for long, measured by the ends of the last second.
func (s *sojourn) silent(at int64) bool {
	return float64(at-s.lastEnd)/1e9 > max(silence, 3/max(s.pace.slow, 1e-9))
}

// watch looks for a sign that new work would take too long.
func (s *sojourn) watch(at int64, n float64, c counts) {
	p, g := &s.pace, &s.sign
	usual := p.asUsual() && !s.silent(at)
	if usual && c.ended > 0 {
		s.standing.Add(at, n+s.standing.Value()-p.rate*p.usual)
	}
	switch {
	case at < s.until, n <= sojournFew, p.usual == 0, usual, p.usual > bearTarget*s.target && p.known < bearSlow*n, s.takes(n) <= s.bearable():
		*g = sign{}
		return
	case g.since == 0:
		*g = sign{since: max(at, s.woke+knownAfter), began: n}
	}
	if s.woke == at && !g.ended {
		g.since, g.began = at+knownAfter, n
	}
	g.ended, g.most = g.ended || c.ended > 0, max(g.most, n)
	wait, by := signLasts, cause.Latency
	switch {
	case !g.ended:
		wait, by = s.target, cause.Hang
	case n >= g.most && n >= signGrew*g.began && p.slow >= p.rate/2: // not after a pause
		wait = signGrows
	}
	if float64(at-g.since)/1e9 >= wait {
		s.hold = hold{cause: by, was: n, good: p.good, rate: p.rate}
		s.hold.before.good, s.hold.before.rate = p.good, p.rate
		s.begin(at, p.slow*s.goal())
		if by == cause.Hang {
			s.since.Store(at)
		}
	}
}

// bearable is how long new work may take without a limit, s. Slow work is seldom, so that n/r is
// uncertain.
func (s *sojourn) bearable() float64 {
	if s.pace.usual > bearTarget*s.target {
		return bearSlow * s.pace.usual
	}
	return max(bearTarget*s.target, bearUsual*s.pace.usual)
}

// goal is how long work may take under a limit, s.
func (s *sojourn) goal() float64 {
	return max(min(goalUsual*s.pace.usual, goalTarget*s.target), goalLeast*s.pace.usual)
}

// nextLimit is the limit from now on, with room for a probe while nothing ends.
func (s *sojourn) nextLimit(at, inFlight int64) int64 {
	if s.hold.cause == cause.None {
		return noLimit
	}
	limit := int64(min(math.Ceil(s.hold.limit+s.standing.Value()), noLimit))
	if at-s.lastEnd >= probeEvery && at-s.probed.Load() >= probeEvery {
		s.probed.Store(at)
		limit = max(limit, inFlight+max(s.wanted.Load(), 1))
	}
	return limit
}
