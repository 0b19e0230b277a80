package adaptive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
)

// Where nothing is limited no number is told.
func TestExplanationOfNoLimit(t *testing.T) {
	newModel(t)
	l := newLimiter(t, adaptive.Default())
	require.Equal(t, "no limit, 0 in flight, 0 waiting; runqueue 96 runnable 0.00; backlog none", l.Explain().String())
	require.Equal(t, "no limit, 0 in flight, 0 waiting", adaptive.Explanation{Limit: l.Limit()}.String())
	require.Equal(t, "limit 0, 0 in flight, 0 waiting; fixed 7", adaptive.Explanation{
		Strategies: []adaptive.State{{Name: "fixed", Limit: 7}},
	}.String())
}
