package decide_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
)

// TestEscrow is the life of a key in a region.
func TestEscrow(t *testing.T) {
	const second = 1_000_000
	e := decide.Escrow{Advance: 5, Hold: 20, Memory: 60 * second, Patience: 2 * second}
	now := int64(1_000 * second)
	s, ok, want := e.Acquire(decide.EscrowState{}, now, 2)
	require.True(t, ok, "in advance")
	require.Equal(t, int64(2), want, "one caller leases the debt")
	name := s.Leased
	s, ok, want = e.Acquire(s, now, 3)
	require.True(t, ok)
	require.Zero(t, want, "a lease is under way")
	s, ok, want = e.Acquire(s, now, 1)
	require.False(t, ok)
	require.Zero(t, want)
	require.Positive(t, e.RetryAfter(s, now))

	now += second / 2
	require.Equal(t, s, e.Lease(s, now, name+1, 9, 0, 0, true), "another lease")
	s = e.Lease(s, now, name, 2, second/2, 0, true)
	require.Equal(t, int64(-3), s.Balance)
	s, ok, want = e.Acquire(s, now, 4)
	require.False(t, ok, "the debt is 3, and at most 5")
	require.Equal(t, int64(3+2*(10/2*3/2)), want, "the debt, and the demand of three leases of half a second")
	s = e.Lease(s, now, s.Leased, want, second/2, 0, true)
	require.Equal(t, int64(14), s.Balance)
	s = e.Return(s, now, 100)
	require.Equal(t, int64(20), s.Balance, "at most Hold")
	s, ok, _ = e.Acquire(s, now, 25)
	require.True(t, ok, "Hold and Advance")
	require.Equal(t, int64(-5), s.Balance)

	late := s.Leased
	now += 3 * second
	require.Zero(t, e.Lease(s, now, late, 9, 0, 0, true).Leased)
	require.Equal(t, int64(-5), e.Lease(s, now, late, 9, 0, 0, true).Balance, "a late lease is lost")
	s, ok, want = e.Acquire(s, now, 1)
	require.False(t, ok)
	require.Positive(t, want)
	s = e.Lease(s, now, s.Leased, 0, 0, 100*second, false)
	_, _, want = e.Acquire(s, now+9*second, 1)
	require.Zero(t, want, "it waits for the shared limit, at most ten seconds")
	_, ok, want = e.Acquire(s, now+10*second, 1)
	require.False(t, ok)
	require.Positive(t, want)
	_, ok, _ = e.Acquire(s, now+60*second, 5)
	require.True(t, ok, "the floor, again")
	require.LessOrEqual(t, s.Expiry(), now+60*second)
}
