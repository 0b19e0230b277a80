package adaptive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cause"
)

// TestNext: the limits that follow from each kind of moment, of requests of 5 ms on four
// processors.
func TestNext(t *testing.T) {
	calm := measured{target: .5, cost: .005, procs: 4, capacity: 4, demand: .8, usage: .8, passing: 1, waits: 1, over: .01}
	with := func(change func(*measured)) measured {
		m := calm
		change(&m)
		return m
	}
	overload := func(m *measured) { m.demand, m.usage, m.denies = 1.15, 1, true }
	for name, row := range map[string]struct {
		m      measured
		closed float64
		want   queueLimits
		over   bool
	}{
		"calm":             {calm, 6, queueLimits{6, 96, 340, 340, 1.4e9}, false},
		"half closed":      {with(func(m *measured) { m.demand = 1.077 }), 6, queueLimits{6, 49, 340, 340, 1.4e9}, true},
		"overload":         {with(overload), 6, queueLimits{6, 6, 340, 340, 1.4e9}, true},
		"few served":       {with(func(m *measured) { overload(m); m.passing = .1 }), 4, queueLimits{4, 4, 340, 340, 1.4e9}, true},
		"after less":       {with(func(m *measured) { overload(m); m.over = 1e9 }), 50, queueLimits{6, 6, 340, 340, 1.4e9}, true},
		"idle and denying": {with(func(m *measured) { m.demand, m.denies, m.over = 1.15, true, 1e9 }), 6, queueLimits{96, 96, 340, 340, 1.4e9}, true},
		"shared":           {with(func(m *measured) { overload(m); m.waits = 3 }), 6, queueLimits{12, 12, 113, 340, 1.4e9}, true},
		"slow work":        {with(func(m *measured) { m.cost = .5 }), 1, queueLimits{2.8, 20, 3, 3, 1.4e9}, false},
		"neighbours":       {with(func(m *measured) { m.capacity = 1 }), 6, queueLimits{6, 70, 85, 340, 350e6}, false},
		"cost unknown":     {with(func(m *measured) { m.cost, m.demand = 0, 0 }), 6, queueLimits{6, 96, noLimit, noLimit, 1.4e9}, false},
	} {
		got, reason := next(row.m, row.closed)
		require.InDelta(t, row.want.closed, got.closed, 1e-9, name)
		got.closed = row.want.closed
		require.Equal(t, row.want, got, name)
		require.Equal(t, row.over, reason == cause.Processor, name)
	}
}
