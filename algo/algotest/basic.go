package algotest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

var ctx = context.Background()

// misuse: a negative cost is an error, and neither charges nor refunds; any
// string is a key.
func misuse(t *testing.T, s subject) {
	l := s.new(t, algo.PerHour(5))
	for _, n := range []int64{-1, -5, math.MinInt64} {
		lease, err := l.Acquire(ctx, "k", n)
		require.ErrorIs(t, err, algo.ErrCost)
		require.False(t, lease.Allowed)
		lease.Release(algo.Canceled)
	}
	for _, key := range []string{"", strings.Repeat("x", 64<<10), "\x00\xff{}:\n"} {
		require.True(t, acquire(t, l, key, 1).Allowed, "key of %d bytes", len(key))
	}
	require.LessOrEqual(t, drain(t, l, "k"), s.bound.Units(algo.PerHour(5), 0))
}

// neverFits: a cost that can never fit is denied with Never, and changes
// nothing.
func neverFits(t *testing.T, s subject) {
	if s.bound.PayForward {
		return
	}
	l := s.new(t, algo.PerHour(5))
	for _, n := range []int64{1 << 40, math.MaxInt64 - 1, math.MaxInt64} {
		lease := acquire(t, l, "k", n)
		require.False(t, lease.Allowed, "n = %d", n)
		require.Equal(t, algo.Never, lease.Reason)
		require.Equal(t, algo.Forever, lease.RetryAfter)
	}
	require.True(t, acquire(t, l, "k", 1).Allowed)
}

// remaining: exactly Remaining units are admitted without delay.
func remaining(t *testing.T, s subject) {
	if s.bound.PayForward {
		return
	}
	l := s.new(t, algo.PerSecond(7))
	for range 20 {
		left := peek(t, l, "k").Remaining
		require.Equal(t, left, drain(t, l, "k"))
		d := peek(t, l, "k")
		require.Zero(t, d.Remaining)
		require.Positive(t, d.NextAfter)
		require.GreaterOrEqual(t, d.ResetAfter, d.NextAfter)
		time.Sleep(d.NextAfter - 1)
		require.Zero(t, peek(t, l, "k").Remaining, "NextAfter is too long, a unit is left a nanosecond earlier: "+readClock)
		time.Sleep(time.Nanosecond)
		require.Positive(t, peek(t, l, "k").Remaining, "NextAfter is too short, no unit is left then: "+readClock)
		time.Sleep(123456789)
	}
	time.Sleep(peek(t, l, "k").ResetAfter)
	d := peek(t, l, "k")
	require.Equal(t, d.Limit, d.Remaining)
	require.Zero(t, d.NextAfter)
}

// splitCost: n units at once cost the same as n single ones.
func splitCost(t *testing.T, s subject) {
	if s.bound.PayForward {
		return
	}
	r := algo.Per(10, 3*time.Second) // a rate that does not divide
	whole, split := s.new(t, r), s.new(t, r)
	for n := range int64(5) {
		require.True(t, acquire(t, whole, "k", n).Allowed)
		for range n {
			require.True(t, acquire(t, split, "k", 1).Allowed)
		}
		w, p := peek(t, whole, "k"), peek(t, split, "k")
		require.Equal(t, w, p, "after %d", n)
		time.Sleep(w.ResetAfter)
	}
}

// debt: what Settle adds beyond the limit is paid off until ResetAfter.
func debt(t *testing.T, s subject) {
	l := s.new(t, algo.PerSecond(7))
	lease := acquire(t, l, "k", 1)
	drain(t, l, "k")
	before := peek(t, l, "k")
	time.Sleep(before.NextAfter / 2)
	lease.Settle(1 + before.Limit)
	after := peek(t, l, "k")
	require.Greater(t, after.NextAfter, before.NextAfter-before.NextAfter/2, addsAll)
	time.Sleep(after.ResetAfter - 1)
	require.Less(t, peek(t, l, "k").Remaining, after.Limit, "ResetAfter is too long: a nanosecond earlier nothing is spent")
	time.Sleep(time.Nanosecond)
	require.Equal(t, after.Limit, peek(t, l, "k").Remaining, "ResetAfter is too short: units are missing still")
}

// description: what About states is what the answers say. The time in which a spent quota comes
// back is Window, and that of Rate, but for how windows are rounded.
func description(t *testing.T, s subject) {
	l := s.new(t, algo.PerSecond(10))
	d := describe(t, l, algo.Requests)
	if s.bound.RealTime || d.Quota == 0 {
		return
	}
	drain(t, l, "k")
	time.Sleep(peek(t, l, "k").ResetAfter) // so that a window begins
	drain(t, l, "k")
	reset := peek(t, l, "k").ResetAfter
	require.True(t, reset/2 <= d.Window && d.Window <= 2*reset, "About: Window is %v, but a spent quota comes back in %v", d.Window, reset)
	if r := d.Rate; r.Count > 0 && !s.bound.Strict {
		rated := time.Duration(d.Quota) * r.Period / time.Duration(r.Count)
		require.True(t, reset/2 <= rated && rated <= 2*reset, "About: Rate brings the quota in %v, but it comes back in %v", rated, reset)
	}
}

// describe requires that the Description of l has that unit and the limit of its answers. It is
// empty for a limiter that has none.
func describe(t *testing.T, l algo.Limiter, unit algo.Unit) (d algo.Description) {
	if _, ok := l.(algo.Describer); !ok {
		return d
	}
	d = algo.About(l)
	require.Equal(t, unit, d.Unit, "About: Unit has to be what the limit counts")
	require.Contains(t, []int64{0, peek(t, l, "k").Limit}, d.Quota, "About: Quota has to be the Limit of the answers, or 0")
	return d
}

// allocations: a decision allocates nothing, admitted or denied.
func allocations(t *testing.T, s subject) {
	l := s.new(t, algo.PerHour(1000))
	for _, key := range []string{"", "k"} {
		peek(t, l, key)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			lease, _ := l.Acquire(ctx, key, 1)
			lease.Release(algo.Succeeded)
		}), "admitted, key %q", key)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			lease, _ := l.Acquire(ctx, key, 1)
			lease.Release(algo.Canceled)
		}), "refunded, key %q", key)
		drain(t, l, key)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			lease, _ := l.Acquire(ctx, key, 1)
			lease.Release(algo.Succeeded)
		}), "denied, key %q", key)
	}
}
