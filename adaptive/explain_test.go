package adaptive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
)

// TestExplanationOfNoLimit has no number.
func TestExplanationOfNoLimit(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Default(m.option()))
	require.Equal(t, "no limit, 0 in flight, 0 waiting; runqueue 96 runnable 0.00; sojourn none", l.Explain().String())
	require.Equal(t, "no limit, 0 in flight, 0 waiting", adaptive.Explanation{Limit: l.Limit()}.String())
	require.Equal(t, "limit 0, 0 in flight, 0 waiting; fixed 7", adaptive.Explanation{
		Strategies: []adaptive.State{{Name: "fixed", Limit: 7}},
	}.String())
}
