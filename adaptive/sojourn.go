package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive/internal/window"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// sojourn limits the work in flight while new work would take too long: n/r by Little's law, where n is
// in flight and r ends per second.
//
// It is self-stabilising: everything that it learns expires, so it recovers from any state within
// seconds.
//
//   - Without a limit it denies nothing while n/r is at most signTarget of the patience, whatever it
//     has learned.
//   - A limit is half of a target's worth of ends. If work takes less than that by nature, the limit
//     grows with each window, up to the capacity; so the time of work need not be known.
//   - Beyond that it distinguishes a queue from slow work: in a queue the time of work grows with the
//     work in flight (fit), and the rate of ends does not fall with it (windowed). Samples are gone
//     after two spans of 1.5 s, or of three mean times; the window before a limit goes with the limit.
//   - It takes work for slow by nature (slow) for 1 to 5 minutes, and only while the time grows less
//     than 1.5-fold. A limit has to show it: the rate of ends followed the limit.
//   - Clients that leave lower the target (patience), which grows again by a tenth each second.
type sojourn struct {
	wiring.Owned
	machine machine.Machine
	target  float64     // s
	busy    func() bool // whether work waits for the processor; for the text only
	hook    func(State)

	limit atomic.Int64
	next  atomic.Int64  // instant of the next update
	cause atomic.Uint32 // of the limit in force, an algo.Cause
	late  atomic.Bool   // new work would take longer than the target
	stood atomic.Int64  // standing work
	since atomic.Int64  // instant of the first admission within the last limit
	_     [64]byte      // every request writes the fields below
	counters
	wanted atomic.Int64 // slots of the last denied work
	probed atomic.Int64 // instant of the last probe
	_      [64]byte

	mu       sync.Mutex // guards the fields below
	pace     pace
	standing window.Lowest // work in flight for long, such as long polls
	now      float64       // work in flight at the last update, without standing work
	patience float64       // of the clients, at most the target, s
	calmAt   int64         // instant at which work was last quick
	sign     sign
	hold     hold
	slow     slow
	ended    string // why the last limit ended
}

const (
	sojournEvery = int64(5 * time.Millisecond)
	probeEvery   = int64(1e9) // ns, while nothing ends: hang 10s
	idleEnds     = int64(1e9) // ns without arrivals and ends, which end a limit: TestDefaultAfterAPause
	bearTarget   = 0.5        // of the patience, time of work under a limit; none begins below signTarget
	calmTarget   = 0.25       // of the patience, time of work in calm
	patienceLow  = 0.1        // of the target, at least: quick failures are no clients that left
	patienceGrow = 10.0       // s, in which it grows by e
	patienceUsed = 0.8        // of the time after which clients left: 10 x 20ms cv 2
)

func newSojourn(m machine.Machine, target float64, busy func() bool, hook func(State)) *sojourn {
	s := &sojourn{machine: m, target: target, busy: busy, hook: hook, patience: target, calmAt: math.MinInt64 / 2}
	s.limit.Store(noLimit)
	at := m.Now()
	s.pace.target, s.pace.updated, s.pace.lastEnd = target, at, at
	return s
}

func (s *sojourn) Limit() int           { return int(s.limit.Load()) }
func (s *sojourn) Observe(Sample)       {}
func (s *sojourn) On(m machine.Machine) { s.machine = m }

func (s *sojourn) Admitted(at time.Duration, _, inFlight int64) {
	s.began.Add(1)
	s.update(int64(at), inFlight)
}

func (s *sojourn) Finished(x Sample, inFlight int64) {
	if x.Outcome.Result() == algo.Canceled {
		s.began.Add(-1)
		if int64(x.End-x.RTT) >= s.probed.Load() { // a canceled probe: allow another one
			s.probed.Store(0)
		}
	} else {
		n := max(int64(x.InFlight)-s.stood.Load(), 0)
		s.pace.end(&s.counters, n, x, s.since.Load(), int64(patienceLow*s.target*1e9))
	}
	s.update(int64(x.End), inFlight)
}

// Denied updates too, because nothing else does while every request is denied.
func (s *sojourn) Denied(at time.Duration, n, inFlight int64, _ algo.Cause) {
	if n = max(n, 1); s.wanted.Load() != n {
		s.wanted.Store(n)
	}
	s.turned.Add(1)
	s.update(int64(at), inFlight)
}

// Cause returns latency or hang while there is a limit.
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
	was := s.hold.cause
	s.regime(at, inFlight)
	changed, ended := s.hold.cause != was, s.ended
	s.mu.Unlock()
	if !changed {
		return
	}
	is := s.State()
	if !is.Overloaded {
		is.Cause = ended
	}
	s.hook(is)
}

// regime is update with s.mu held.
func (s *sojourn) regime(at, inFlight int64) {
	s.next.Store(at + sojournEvery)
	if at-s.pace.updated > idleEnds {
		s.free("nothing arrived for a second")
	}
	c, dt := s.drain(), float64(max(at-s.pace.updated, 1))/1e9
	n := max(float64(inFlight)-s.standing.Value(), 0)
	s.now = n
	s.pace.update(at, c, n)
	s.measure(at, dt, c, float64(inFlight))
	if s.hold.cause == cause.None {
		if n <= sojournFew {
			s.pace.few = at
		}
		s.watch(at, n)
	} else {
		s.govern(at, n, dt, c)
	}
	s.cause.Store(uint32(s.hold.cause))
	s.late.Store(s.takes(n) > s.target)
	s.limit.Store(s.nextLimit(at, inFlight))
}

// measure estimates the standing work and the clients' patience, and notes calm.
func (s *sojourn) measure(at int64, dt float64, c counts, inFlight float64) {
	p := &s.pace
	if p.old.Load() {
		s.standing.Reset(at, 0)
	} else if lasts := p.lasts(); lasts > 0 && s.hold.cause != cause.Hang {
		s.standing.Add(at, max(inFlight-p.slow*lasts, 0))
	}
	s.stood.Store(int64(s.standing.Value()))
	s.patience = min(max(s.patience, patienceLow*s.target)*math.Exp(dt/patienceGrow), s.target)
	if p.leaves() {
		s.patience = min(s.patience, max(patienceUsed*p.waited/p.left, patienceLow*s.target))
	}
	if s.hold.cause == cause.None && c.ended > 0 && p.fit.mean() > 0 && max(s.takes(s.now), p.fit.mean()) <= calmTarget*s.patience {
		s.calmAt = at
	}
}

// takes returns how long new work would take behind n, s.
func (s *sojourn) takes(n float64) float64 { return n / max(s.pace.rate, 1e-9) }

// free ends the limit.
func (s *sojourn) free(why string) { s.hold, s.sign, s.ended = hold{}, sign{}, why }

// nextLimit returns the new limit, with room for a probe while nothing ends.
func (s *sojourn) nextLimit(at, inFlight int64) int64 {
	if s.hold.cause == cause.None {
		return noLimit
	}
	limit := int64(min(math.Ceil(s.hold.limit+s.standing.Value()), noLimit))
	if at-s.pace.lastEnd >= probeEvery && at-s.probed.Load() >= probeEvery {
		s.probed.Store(at)
		limit = max(limit, inFlight+max(s.wanted.Load(), 1))
	}
	return limit
}
