package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFairShares: the parts that tenants get of a server under overload, and that
// the total served stays the same.
func TestFairShares(t *testing.T) {
	for _, row := range []struct {
		scenario, strategy string
		least, jain        float64
		all                float64 // relative to the work served without shares
	}{
		{"flood.1", "Default", 0.95, 0.98, 0.95},
		{"flood.5", "Default", 0.93, 0.98, 0.95},
		{"flood1", "Default", 0.75, 0.98, 0.95},
		{"weights", "Default", 0.9, 0.98, 0.95},
		{"costs", "Default", 0.75, 0.98, 0.8},
		{"blink", "Default", 0.9, 0.98, 0.95},
		{"flood.5", "RunQueue", .93, .98, .95},
	} {
		for _, s := range Shared(1, 5*ms, 250*ms) {
			if s.ID != row.scenario {
				continue
			}
			plain, err := Run(s, named(t, row.strategy), 2)
			require.NoError(t, err)
			s.Fair = true
			fair, err := Run(s, named(t, row.strategy), 2)
			require.NoError(t, err)
			before, got := Divided(plain.Tenants), Divided(fair.Tenants)
			require.Greater(t, got.Least, row.least, "%s %+v", s.ID, got)
			require.Greater(t, got.Jain, row.jain, "%s %+v", s.ID, got)
			require.Less(t, before.Jain, .95, "%s without shares", s.ID)
			require.Greater(t, got.All, row.all*before.All, "%s", s.ID)
		}
	}
}

func named(t *testing.T, name string) Strategy {
	for _, s := range Strategies() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no strategy %s", name)
	return Strategy{}
}

func TestJain(t *testing.T) {
	require.Equal(t, 1.0, Jain([]float64{.5, .5, .5}))
	require.Equal(t, .25, Jain([]float64{1, 0, 0, 0}))
	require.Equal(t, 1.0, Jain(nil))
}
