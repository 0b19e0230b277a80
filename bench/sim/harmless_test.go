package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHarmless: a burst that drains within the SLO, and a closed loop, are no
// overload: at most 1 % is rejected, and a closed loop keeps .95 of its goodput.
func TestHarmless(t *testing.T) {
	for _, s := range Harmless() {
		none, err := Run(s, None(), 1)
		require.NoError(t, err)
		for _, by := range Strategies()[:1] {
			r, err := Run(s, by, 1)
			require.NoError(t, err)
			t.Logf("%-22s %-8s rejected %5.1f %%  goodput %.3f of %.3f  p99 %v", s.ID, by.Name, 100*r.Rejected, r.Goodput, none.Goodput, r.P99)
			if s.Clients == 0 && r.Rejected > .01 {
				t.Errorf("%s: %.1f %% rejected", s.ID, 100*r.Rejected)
			}
			if r.Goodput < .95*none.Goodput {
				t.Errorf("%s: goodput %.3f of %.3f", s.ID, r.Goodput, none.Goodput)
			}
		}
	}
}
