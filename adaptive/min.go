package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/wiring"
)

// Min returns a strategy with the lowest limit of several, all of which learn: one for the
// processor and one for a dependency, for example. It panics without a strategy or with a nil one.
//
// If one of them counts units ([Fixed] and others that are no [Follower]), a cost above 1 takes as
// many slots of all, and those that count requests ([Default], [RunQueue]) are too strict. Where
// costs differ, combine two limiters by algo.All instead.
func Min(strategies ...Strategy) Strategy {
	if len(strategies) == 0 {
		panic("adaptive: Min needs a strategy")
	}
	m := &minimum{all: strategies}
	for i, s := range strategies {
		if s == nil {
			panic(fmt.Sprintf("adaptive: Min: strategy %d is nil", i))
		}
		if f, ok := s.(Follower); ok {
			m.following = append(m.following, f)
		}
	}
	return m
}

type minimum struct {
	all       []Strategy
	following []Follower
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

func (m *minimum) MaxLimit() int {
	least := noLimit
	for _, s := range m.all {
		least = min(least, maxLimit(s))
	}
	return least
}

func (m *minimum) Check() (err error) {
	for _, s := range m.all {
		err = errors.Join(err, wiring.Check(s))
	}
	return err
}

func (m *minimum) Admitted(at time.Duration, n, inFlight int64) {
	for _, f := range m.following {
		f.Admitted(at, n, inFlight)
	}
}

func (m *minimum) Finished(s Sample, inFlight int64) {
	for _, f := range m.following {
		f.Finished(s, inFlight)
	}
}

func (m *minimum) Denied(at time.Duration, n, inFlight int64, c algo.Cause) {
	for _, f := range m.following {
		f.Denied(at, n, inFlight, c)
	}
}

// leaves returns the strategies in s: s itself, unless it is a Min.
func leaves(s Strategy) []Strategy {
	m, ok := s.(*minimum)
	if !ok {
		return []Strategy{s}
	}
	var all []Strategy
	for _, one := range m.all {
		all = append(all, leaves(one)...)
	}
	return all
}
