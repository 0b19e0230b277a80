package adaptive

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// TestSharesOfHugeRequests: the service of a huge request is no less than that of a small one.
func TestSharesOfHugeRequests(t *testing.T) {
	const second = 1_000_000_000
	for _, n := range []int64{1 << 20, 1 << 31, 1 << 40, math.MaxInt64} {
		s := newShares(nil)
		c := s.charge("a", n, second, 1, second)
		require.True(t, c.within())
		require.Equal(t, uint64(math.MaxUint32&^1), uint64(c.service), n)
		s.finished("a", n, 101*second, 100*second, algo.Succeeded, c)
		require.False(t, s.charge("a", 1, 102*second, 1, second).within(), "%d: it owes", n)
		c = s.charge("b", n, 102*second, 1, second)
		s.finished("b", n, 202*second, 100*second, algo.Ignored, c)
		b, sp, l := s.since.take()
		require.GreaterOrEqual(t, min(b, sp, l), 0.0)
	}
}
