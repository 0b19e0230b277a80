package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestClasses: at three times the capacity a lower class is denied before a higher one,
// by each strategy that holds the load. The two lowest are denied alike: what they get, 2 % at
// most, comes before the overload is noticed, and which of them gets more is chance.
func TestClasses(t *testing.T) {
	s := Clients()[3].shorten(150000)
	require.True(t, s.Priorities)
	for _, name := range []string{"Default", "RunQueue", "BBR"} {
		r, err := Run(s, named(t, name), 1)
		require.NoError(t, err)
		require.Greater(t, r.Classes[0], .98, "%s: Critical, of %v", name, r.Classes)
		require.Less(t, r.Classes[4], .2, "%s: Sheddable, of %v", name, r.Classes)
		for class, share := range r.Classes[1:] {
			require.Less(t, share, max(r.Classes[class], .02), "%s: %v", name, r.Classes)
		}
		require.Greater(t, r.Goodput, .93*r.Possible, name)
		s.Priorities = false
		plain, err := Run(s, named(t, name), 1)
		require.NoError(t, err)
		require.Less(t, plain.Classes[0], .5, "%s without classes", name)
		s.Priorities = true
	}
}
