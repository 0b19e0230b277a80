package adaptive

import (
	"errors"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// traits describes a limiter's strategies. Strategies of this package state their own by a method;
// the interfaces that others implement show theirs.
type traits struct {
	gates      []Gate        // none: only the limit decides
	blamable   []blamable    // know why their limit is low
	failing    []failing     // learn from failures that are no samples
	clocked    []clockReader // read the clock themselves
	owned      []ownable     // belong to one limiter
	processors []*runQueue
	tooLate    func() bool // whether new work would be too late; nil: unknown

	max           int64 // largest limit
	countsWaiting bool  // work that waits for its client counts as in flight
	perRequest    bool  // a cost above 1 counts as 1
	binds         bool  // a limit is in force without overload too
}

// blamable is a strategy that knows why its limit is as low as it is.
type blamable interface {
	Strategy
	Cause() algo.Cause
}

// failing is a strategy that learns from failures that are no samples, because they end sooner than a
// success usually does.
type failing interface{ ObserveFastFailure(Sample) }

// clockReader is a strategy that reads the clock itself.
type clockReader interface{ On(machine.Machine) }

// ownable is a strategy that knows whether it belongs to a limiter.
type ownable interface {
	Take() bool
	GiveBack()
}

// traitsOf returns the traits of s, or of all strategies in a Min.
func traitsOf(s Strategy) traits {
	t := traits{max: int64(maxLimit(s)), perRequest: true}
	for _, leaf := range leaves(s) {
		t.add(leaf)
	}
	return t
}

func (t *traits) add(s Strategy) {
	gate, isGate := s.(Gate)
	_, follows := s.(Follower)
	t.perRequest = t.perRequest && follows
	t.binds = t.binds || !isGate && !follows
	if isGate {
		t.gates = append(t.gates, gate)
	}
	t.blamable = appendIf(t.blamable, s)
	t.failing = appendIf(t.failing, s)
	t.clocked = appendIf(t.clocked, s)
	t.owned = appendIf(t.owned, s)
	if own, ok := s.(interface{ traits(*traits) }); ok {
		own.traits(t)
	}
}

func appendIf[T any](all []T, s Strategy) []T {
	if one, ok := s.(T); ok {
		all = append(all, one)
	}
	return all
}

func (f *fixed) traits(t *traits)    { t.countsWaiting = true }
func (q *runQueue) traits(t *traits) { t.processors = append(t.processors, q) }
func (s *sojourn) traits(t *traits)  { t.tooLate = s.late.Load }

var errTaken = errors.New("strategy is already in use; make one strategy per limiter")

// take marks all strategies as in use, or none of them if one already is.
func (t *traits) take() error {
	for i, one := range t.owned {
		if !one.Take() {
			for _, taken := range t.owned[:i] {
				taken.GiveBack()
			}
			return errTaken
		}
	}
	return nil
}
