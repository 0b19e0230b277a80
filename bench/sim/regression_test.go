package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStrategies pins the results of some strategies in some scenarios, over 3 seeds
// each.
func TestStrategies(t *testing.T) {
	byName := map[string]Strategy{"none": None(), "trial": Trial()}
	for _, s := range Strategies() {
		byName[s.Name] = s
	}
	scenarios := map[string]Scenario{}
	for _, g := range Groups() {
		for _, s := range g.Scenarios {
			scenarios[s.ID] = s
		}
	}
	for _, row := range []struct {
		scenario, strategy string
		least, most        float64 // goodput of the worst seed, over the possible one
		needless           float64 // most rejections in calm times
	}{
		{"A2x", "none", 0, .1, 0},
		{"A2x", "Default", .93, 1.02, .01},
		{"A5x", "RunQueue", .97, 1.02, .01},
		{"C", "Default", .97, 1.02, .01},
		{"G", "Default", .95, 1.02, .01},
		{"H", "Default", .95, 1.02, .01},
		{"remote", "Default", .93, 1.02, .15}, // its in-flight limit takes the queue of a busy pool for overload
		{"go-5ms-5x", "RunQueue", .97, 1.02, .01},
		{"go-5ms-5x", "Default", .97, 1.02, .01},
		{"batch-go-5ms-2x", "Default", .94, 1.02, .01},
		{"batch-go-.5ms-2x", "Default", .94, 1.02, .01},
		{"neighbour-go-5ms-1.3x", "Default", .95, 1.02, .01},
		{"neighbour-go-30ms-1.3x", "Default", .6, 1.02, .08},
		{"crowded-go-.5ms-1.3x", "Default", .98, 1.02, .01},
		{"crowded-go-5ms-2x", "Default", .93, 1.02, .01},
		{"crowded-go-30ms-5x", "Default", .3, 1.02, .03}, // of 30 ms a quarter of a processor makes 120
		{"A2x", "BBR", .98, 1.02, .02},
		{"A2x", "Vegas", .96, 1.02, .08},
		{"A5x", "BBR", .98, 1.02, .02},
		{"A10x", "BBR", .98, 1.02, .02},
		{"C", "BBR", .98, 1.02, .01},
		{"C", "AIMD", .97, 1.02, .01},
		{"D", "Vegas", .9, 1.02, .1},
		{"F", "BBR", .95, 1.02, .02},
		{"G", "BBR", .95, 1.02, .02},
		{"H2", "BBR", .98, 1.02, .01},
		{"fifo5x", "Vegas", .97, 1.02, .05},
		{"remote", "Vegas", .97, 1.02, .05},
		{"remote", "BBR", 0, .1, .01}, // the processor idles: no strategy for that
		{"quota", "Default", .96, 1.02, .01},
		{"pod", "Default", .96, 1.02, .01},
		{"quota", "BBR", .95, 1.02, .01},
		{"pauses", "BBR", .95, 1.02, .08},
		{"zombies", "BBR", .97, 1.02, .02},
		{"go-5ms-5x", "BBR", 0, .1, .01}, // the queue is in front of the gate
		{"go-5ms-5x", "trial", .97, 1.02, .01},
		{"go-io-10x", "trial", .97, 1.02, .01},
	} {
		s, ok := scenarios[row.scenario]
		require.True(t, ok, row.scenario)
		sum, err := Evaluate(s.shorten(150000), byName[row.strategy], 3)
		require.NoError(t, err)
		got := sum.Goodput.Worst / sum.Possible
		require.GreaterOrEqual(t, got, row.least, "%s %s", row.scenario, row.strategy)
		require.LessOrEqual(t, got, row.most, "%s %s", row.scenario, row.strategy)
		require.LessOrEqual(t, sum.Needless.Worst, row.needless, "%s %s", row.scenario, row.strategy)
	}
}
