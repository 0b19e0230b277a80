package adaptive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

func TestS3_ClassOutOfRange(t *testing.T) {
	l := newLimiter(t, gated(5), adaptive.WithPriorities())
	for _, c := range []adaptive.Class{5, 6, 100, 255} {
		ctx := adaptive.WithClass(background, c)
		require.Equal(t, adaptive.Sheddable, adaptive.ClassFrom(ctx))
		require.Equal(t, "sheddable", c.String())
		lease, err := l.Acquire(ctx, "k", 1)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
	require.Equal(t, adaptive.Normal, adaptive.ClassFrom(background))
	ctx := adaptive.WithClass(adaptive.WithClass(background, adaptive.Low), adaptive.Critical)
	require.Equal(t, adaptive.Critical, adaptive.ClassFrom(ctx), "the innermost counts")
}
