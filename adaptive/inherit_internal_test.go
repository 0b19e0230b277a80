package adaptive

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// falling is a limit that a test sets, behind a gate that admits every request.
type falling struct{ limit int }

func (f *falling) Limit() int                                     { return f.limit }
func (*falling) Observe(Sample)                                   {}
func (*falling) Admits(time.Duration) bool                        { return true }
func (*falling) Full() bool                                       { return false }
func (*falling) Admitted(time.Duration, int64, int64)             {}
func (*falling) Finished(Sample, int64)                           {}
func (*falling) Denied(_ time.Duration, _, _ int64, _ algo.Cause) {}

// crew asks a limiter for slots, and ends the oldest work.
type crew struct {
	*Limiter
	t      *testing.T
	leases []algo.Lease
}

func newCrew(t *testing.T, s Strategy) *crew {
	l, err := New(s, WithPriorities(), WithLimits(1, 20))
	require.NoError(t, err)
	return &crew{Limiter: l, t: t}
}

func (c *crew) ask(class Class) bool {
	lease, err := c.Acquire(WithClass(context.Background(), class), "", 1)
	require.NoError(c.t, err)
	if lease.Allowed {
		c.leases = append(c.leases, lease)
	}
	return lease.Allowed
}

func (c *crew) end(n int) {
	for _, lease := range c.leases[:n] {
		lease.Release(algo.Succeeded)
	}
	c.leases = c.leases[n:]
}

// TestClassesInheritSlots: while more is in flight than a limit that fell allows, requests get every
// second slot that ends, if a lower class asks too and they would not be late.
func TestClassesInheritSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, late := &falling{20}, false
		c := newCrew(t, limit)
		require.Nil(t, c.tooLate, "for Default only")
		c.tooLate = func() bool { return late }
		for range 20 {
			require.True(t, c.ask(Normal))
		}
		limit.limit = 4
		require.False(t, c.ask(Critical))
		c.end(4)
		require.False(t, c.ask(Critical), "no lower class asks")
		require.False(t, c.ask(Sheddable))
		require.True(t, c.ask(Critical))
		require.False(t, c.ask(High), "the last two are for Critical")
		require.True(t, c.ask(Critical))
		require.False(t, c.ask(Critical), "two of four")
		require.Equal(t, 18, c.InFlight())
		c.end(4)
		require.False(t, c.ask(Sheddable), "the lowest class")
		require.True(t, c.ask(High))
		require.False(t, c.ask(High))

		c.max = 15
		require.False(t, c.ask(Critical), "not above the upper bound")
		c.max = 20
		c.end(6)
		late = true
		require.False(t, c.ask(Critical), "it would be late")
		late = false
		require.True(t, c.ask(Critical))
		require.True(t, c.ask(Critical))
		require.False(t, c.ask(Critical), "a burst inherits no more than the last slots")
		time.Sleep(2 * time.Second)
		c.end(4)
		require.Greater(t, c.InFlight(), 4)
		require.False(t, c.ask(Critical), "no lower class asks any more")
	})
}

// TestKeptSlotsOfASmallerLimit: what a class lacked of a larger limit leaves half of a small one to others.
func TestKeptSlotsOfASmallerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := &falling{20}
		c := newCrew(t, limit)
		for range 30 {
			c.ask(Critical)
		}
		c.end(20)
		limit.limit = 4
		require.True(t, c.ask(Sheddable))
		require.True(t, c.ask(Sheddable))
		require.False(t, c.ask(Sheddable))
		c.end(2)
		time.Sleep(time.Minute)
		limit.limit = 20
		for range 30 {
			c.ask(Sheddable)
		}
		c.end(20)
		require.True(t, c.ask(Critical))
		for range 19 {
			require.True(t, c.ask(Sheddable), "nothing is kept for a class after a minute without a request")
		}
	})
}
