package adaptive

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cause"
)

// TestSharesOfHugeRequests: the service of a huge request is at least as large as a small
// one's.
func TestSharesOfHugeRequests(t *testing.T) {
	const second = 1_000_000_000
	for _, n := range []int64{1 << 20, 1 << 31, 1 << 40, math.MaxInt64} {
		s := newShares(nil)
		c, _ := s.charge("a", 1, n, second, 1, second)
		require.True(t, c.within())
		require.Equal(t, uint64(math.MaxUint32&^1), uint64(c.service), n)
		s.finished("a", n, 101*second, 100*second, c)
		beyond, _ := s.charge("a", 1, 1, 102*second, 1, second)
		require.False(t, beyond.within(), "%d: it is beyond its share", n)
		c, _ = s.charge("b", 1, n, 102*second, 1, second)
		s.finished("b", n, 202*second, 100*second, c)
		b, sp, l := s.since.take()
		require.GreaterOrEqual(t, min(b, sp, l), 0.0)
	}
}

// TestCreditOfAGiant: a request that is worth minutes moves no more than one credit: it
// neither passes more requests that the gate denies, nor costs a lower class more.
func TestCreditOfAGiant(t *testing.T) {
	const millisecond = 1_000_000
	const most = 100 * millisecond
	const normal, low = places * rank(Normal), places * rank(Low)
	asks := func(o *order, r rank, n int, admits bool) int { return asksFor(o, r, n, admits, most) }
	o := newOrder(true, true, nil)
	require.Equal(t, 20, asks(o, normal, 1000, false))
	giant := claim{rank: normal + 2, price: 275_000 * millisecond}
	o.pass(&giant, true, false, most) // pays
	require.Equal(t, 40, asks(o, normal, 100_000, false))

	o = newOrder(true, true, nil)
	giant.rank = normal
	require.Equal(t, cause.None, o.pass(&giant, false, false, most), "on credit")
	require.GreaterOrEqual(t, asks(o, low, 1000, true), 950)
}

// asksFor lets n requests of 5 ms ask, and returns how many pass.
func asksFor(o *order, r rank, n int, admits bool, most int64) (passed int) {
	for range n {
		c := claim{rank: r, price: 5_000_000}
		if o.pass(&c, admits, false, most) == cause.None {
			passed++
		}
	}
	return passed
}

// TestLargestDebtIsPaidFirst: a denial of the lowest rank restores the credit of the rank that
// has used most of it.
func TestLargestDebtIsPaidFirst(t *testing.T) {
	const most = 100_000_000
	critical, normal := places*rank(Critical), places*rank(Normal)
	o := newOrder(true, false, nil)
	require.Equal(t, 5, asksFor(o, normal, 5, false, most))
	require.Equal(t, 20, asksFor(o, critical, 1000, false, most))
	require.Zero(t, asksFor(o, ranks-1, 10, true, most))
	require.Equal(t, 10, asksFor(o, critical, 1000, false, most))
}

// TestFairRateWhileNoneIsBound: the rate rises to the use of all that is spare, and not beyond:
// a tenant that comes back from its debt would take the others' share.
func TestFairRateWhileNoneIsBound(t *testing.T) {
	c := &fairClock{used: newUsed(), at: 1, base: 1, rate: .05}
	for range 50 { // of 100 ms, with 40 ms of service beyond the shares
		c = c.next(c.at+fairTurn, 0, 40e6, 0)
	}
	require.InDelta(t, .4, c.rate, .01)
}
