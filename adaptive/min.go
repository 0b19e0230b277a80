package adaptive

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/algo"
)

// Min is the lowest limit of several strategies, which all learn: one for the
// processor and one for a dependency, for example. Without a strategy, or with a
// nil one, it panics.
//
// If one of them counts units ([Fixed], [AIMD], [Gradient2], [Vegas], a strategy of your own), a
// cost above 1 takes as many slots of all: those that count requests ([Default], [RunQueue],
// [BBR], [CompatKratos]) are too strict then. Where costs differ combine two limiters instead, by
// algo.All.
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

func (m *minimum) maxLimit() int {
	least := noLimit
	for _, s := range m.all {
		least = min(least, maxLimit(s))
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

func (m *minimum) finished(at, rtt, inFlight int64, o algo.Outcome) {
	for _, f := range m.following {
		f.finished(at, rtt, inFlight, o)
	}
}

func (m *minimum) denied(by cause, at, n, inFlight int64) {
	for _, f := range m.following {
		f.denied(by, at, n, inFlight)
	}
}

// leaves are the strategies that s consists of: s itself, unless it is a Min.
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

// countsUnits reports whether s limits units in flight, not requests.
func countsUnits(s Strategy) bool {
	switch s.(type) {
	case *runQueue, *sojourn, *bbr, *kratos:
		return false
	}
	return true
}

// take marks the strategies in s as in use, or none of them if one already is.
func take(s Strategy) error {
	var taken []ownable
	for _, one := range leaves(s) {
		o, ok := one.(ownable)
		if !ok {
			continue
		}
		if !o.take() {
			for _, t := range taken {
				t.giveBack()
			}
			return errTaken
		}
		taken = append(taken, o)
	}
	return nil
}

// gateOf is the gate in a strategy, nil if there is none.
func gateOf(s Strategy) gate {
	var all gates
	for _, one := range leaves(s) {
		if g, ok := one.(gate); ok {
			all = append(all, g)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// gates is several gates in a row.
type gates []gate

func (all gates) admits(at int64) bool {
	for _, g := range all {
		if !g.admits(at) {
			return false
		}
	}
	return true
}

func (all gates) full() bool { return slices.ContainsFunc(all, gate.full) }

func (all gates) weigh(usual int64) {
	for _, g := range all {
		g.weigh(usual)
	}
}

func (all gates) slack() (requests, service int64) {
	requests, service = all[0].slack()
	for _, g := range all[1:] {
		r, s := g.slack()
		requests, service = min(requests, r), min(service, s)
	}
	return requests, service
}

func (all gates) empty() bool {
	return !slices.ContainsFunc(all, func(g gate) bool { return !g.empty() })
}
