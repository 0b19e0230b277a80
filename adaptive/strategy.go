package adaptive

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Strategy says how many units may be in flight at most, and learns from the
// work that completes.
//
// Both methods are called from many goroutines at once and must not block:
// Limit once for each request, Observe once for each completed one that may
// teach. A strategy belongs to one [Limiter]; two limiters that share one
// would teach it two services as if they were the same.
type Strategy interface {
	// Limit is the most units in flight. A limiter reads a value below 1 as 1:
	// a gate that admits nothing never learns that it could.
	Limit() int
	// Observe takes in completed work. Canceled and ignored work never gets
	// here, nor does a failure that took less time than a success does: a
	// dependency that refuses within microseconds is not a fast service.
	Observe(Sample)
}

// Sample is one completed piece of work.
type Sample struct {
	// RTT is the time from admission to release, above 0.
	RTT time.Duration
	// End is when it was released, on a monotonic clock with an origin of its
	// own; 0 stands for the present. Only differences mean something.
	End time.Duration
	// InFlight is how many units were in flight when it was admitted, its own
	// included.
	InFlight int
	// Outcome is algo.Succeeded or algo.Failed.
	Outcome algo.Outcome
}

// end is when the sample ended, in the package's time.
func (s *Sample) end() int64 {
	if s.End == 0 {
		return now()
	}
	return int64(s.End)
}

// follower is a strategy that also wants to know of what has not completed, or
// completed without teaching anything.
type follower interface {
	// admitted is told of n units that started at an instant, and of all that
	// are in flight since, these included.
	admitted(at, n, inFlight int64)
	// finished is told of every end, whatever the outcome, and of all that are
	// still in flight.
	finished(at, inFlight int64)
	// denied is told of every request that did not fit, why, and of all that are
	// in flight. It reads the clock only if it must: a denial should cost next to
	// nothing.
	denied(by cause, inFlight int64)
}

var _, _, _, _, _ follower = (*bbr)(nil), (*kratos)(nil), (*minimum)(nil), (*runQueue)(nil), (*backlog)(nil)

// gate is a strategy that judges each request by what it sees at that moment,
// before the limit is asked.
type gate interface {
	// admits reports whether a request may try for a place.
	admits(at int64) bool
	// peek reports whether it would not, without counting one that would.
	peek() (full bool)
	// busy reports whether little room is left.
	busy() bool
}

// gateOf is the gate in a strategy, nil if there is none.
func gateOf(s Strategy) gate {
	switch s := s.(type) {
	case gate:
		return s
	case *minimum:
		var all gates
		for _, one := range s.all {
			if g := gateOf(one); g != nil {
				all = append(all, g)
			}
		}
		if len(all) == 1 {
			return all[0]
		}
		if len(all) > 1 {
			return all
		}
	}
	return nil
}

// gates is several gates, one behind the other.
type gates []gate

func (all gates) admits(at int64) bool {
	for _, g := range all {
		if !g.admits(at) {
			return false
		}
	}
	return true
}

func (all gates) peek() bool { return slices.ContainsFunc(all, gate.peek) }
func (all gates) busy() bool { return slices.ContainsFunc(all, gate.busy) }

// checker is a strategy or signal made by a function that has no error to
// return. Whoever takes it asks for the error.
type checker interface{ check() error }

func check(v any) error {
	if c, ok := v.(checker); ok {
		return c.check()
	}
	return nil
}

// bounded is a strategy that knows the most its Limit will ever be.
type bounded interface{ ceiling() int }

// noLimit is the limit of a strategy that sees no reason for one.
const noLimit = math.MaxInt32

func ceiling(s Strategy) int {
	if b, ok := s.(bounded); ok {
		return b.ceiling()
	}
	return noLimit
}

// Fixed is a strategy that never changes its mind: at most n units in flight,
// 1 or more; [New] reports an n that is not.
//
// It is the right choice where the capacity is known, such as the connections
// of a pool, and wrong where it is a guess: too low wastes capacity, too high
// protects nothing.
func Fixed(n int) Strategy { return fixed(n) }

type fixed int

func (f fixed) Limit() int     { return int(f) }
func (f fixed) Observe(Sample) {}
func (f fixed) ceiling() int   { return int(f) }
func (f fixed) check() error {
	if f < 1 || f > noLimit {
		return fmt.Errorf("fixed limit is %d, want 1 to %d", int(f), noLimit)
	}
	return nil
}
func (f fixed) state() State { return State{Name: "fixed", Limit: int(f)} }

// Min is the lowest limit of several strategies, which all learn: one for the
// processor and one for what is behind the service, for example. Without a
// strategy, or with a nil one, it panics.
func Min(strategies ...Strategy) Strategy {
	if len(strategies) == 0 {
		panic("adaptive: Min needs a strategy")
	}
	m := &minimum{all: strategies}
	for i, s := range strategies {
		if s == nil {
			panic(fmt.Sprintf("adaptive: Min: strategy %d is nil", i))
		}
		if f, ok := s.(follower); ok {
			m.following = append(m.following, f)
		}
	}
	return m
}

type minimum struct {
	all       []Strategy
	following []follower
}

func (m *minimum) Limit() int {
	least := m.all[0].Limit()
	for _, s := range m.all[1:] {
		least = min(least, s.Limit())
	}
	return least
}

func (m *minimum) Observe(s Sample) {
	for _, one := range m.all {
		one.Observe(s)
	}
}

func (m *minimum) ceiling() int {
	least := noLimit
	for _, s := range m.all {
		least = min(least, ceiling(s))
	}
	return least
}

func (m *minimum) check() (err error) {
	for _, s := range m.all {
		err = errors.Join(err, check(s))
	}
	return err
}

func (m *minimum) admitted(at, n, inFlight int64) {
	for _, f := range m.following {
		f.admitted(at, n, inFlight)
	}
}

func (m *minimum) finished(at, inFlight int64) {
	for _, f := range m.following {
		f.finished(at, inFlight)
	}
}

func (m *minimum) denied(by cause, inFlight int64) {
	for _, f := range m.following {
		f.denied(by, inFlight)
	}
}
