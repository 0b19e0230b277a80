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

// peeks: n = 0 is admitted in any state, and does not change it.
func peeks(t *testing.T, s subject) {
	l := s.new(t, algo.PerSecond(4))
	for range 3 {
		before := peek(t, l, "k")
		require.True(t, before.Allowed)
		require.Zero(t, before.Delay)
		require.Equal(t, before, peek(t, l, "k"))
		drain(t, l, "k")
		time.Sleep(300 * time.Millisecond)
	}
}

// denials: a hundred denials of any cost do not change the state.
func denials(t *testing.T, s subject) {
	l := s.new(t, algo.PerSecond(4))
	drain(t, l, "k")
	before := peek(t, l, "k")
	for n := int64(1); n <= 100; n++ {
		lease := acquire(t, l, "k", n)
		if lease.Allowed { // with a Delay
			lease.Release(algo.Canceled)
			continue
		}
		require.Positive(t, lease.RetryAfter)
		require.NotEqual(t, algo.Admitted, lease.Reason)
	}
	require.Equal(t, before, peek(t, l, "k"))
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
		require.Zero(t, peek(t, l, "k").Remaining, "one nanosecond before NextAfter")
		time.Sleep(time.Nanosecond)
		require.Positive(t, peek(t, l, "k").Remaining, "at NextAfter")
		time.Sleep(123456789)
	}
	time.Sleep(peek(t, l, "k").ResetAfter)
	d := peek(t, l, "k")
	require.Equal(t, d.Limit, d.Remaining)
	require.Zero(t, d.NextAfter)
}

// independentKeys: no key spends units of another, including the empty one.
func independentKeys(t *testing.T, s subject) {
	l := s.new(t, algo.PerHour(3))
	want := drain(t, l, "a")
	require.Positive(t, want)
	for _, key := range []string{"b", "", "a ", "A"} {
		require.Equal(t, want, drain(t, l, key), "key %q", key)
	}
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

// releaseTwice: the second Release does nothing, and only Canceled refunds.
func releaseTwice(t *testing.T, s subject) {
	l := s.new(t, algo.PerHour(5))
	settle := func() {
		if s.bound.PayForward { // the next request fits when there is no debt
			time.Sleep(peek(t, l, "k").ResetAfter)
		}
	}
	for _, o := range []algo.Outcome{algo.Succeeded, algo.Failed, algo.Succeeded | algo.Untimed} {
		settle()
		before := peek(t, l, "k")
		lease := acquire(t, l, "k", 1)
		after := peek(t, l, "k")
		lease.Release(o)
		lease.Release(algo.Canceled)
		require.Equal(t, after, peek(t, l, "k"), "%v kept the charge", o)
		require.NotEqual(t, before, after)
	}
	settle()
	lease := acquire(t, l, "k", 1)
	lease.Release(algo.Canceled)
	before := peek(t, l, "k")
	lease.Release(algo.Canceled)
	lease.Settle(100)
	require.Equal(t, before, peek(t, l, "k"))
	new(algo.Lease).Release(algo.Canceled)
	new(algo.Lease).Settle(3)
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
