package algo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestCombinedDecision(t *testing.T) {
	type ds = []algo.Decision
	roomy := algo.Decision{Allowed: true, Limit: 100, Remaining: 90, NextAfter: 1, ResetAfter: 9}
	tight := algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 5}
	late := algo.Decision{Allowed: true, Limit: 50, Remaining: 50, Delay: 7}
	quota := algo.Decision{Reason: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}
	overload := algo.Decision{Reason: algo.Overload, Limit: 8, RetryAfter: 30, NextAfter: 30}
	never := algo.Decision{Reason: algo.Never, Limit: 4, Remaining: 4, RetryAfter: algo.Forever}
	off := algo.Decision{Allowed: true, Source: algo.SourceOff}
	shadowed := algo.Decision{Allowed: true, Source: algo.SourceShadowed, Reason: algo.Quota, Limit: 5, RetryAfter: 70, ResetAfter: 70}

	in(t, map[string]struct {
		parts ds
		want  algo.Decision
	}{
		"the tightest":          {ds{roomy, tight}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 9}},
		"the longest delay":     {ds{late, tight, roomy}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 9, Delay: 7}},
		"equally tight":         {ds{tight, {Allowed: true, Limit: 3, Remaining: 3}}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 5}},
		"of those that denied":  {ds{tight, late, quota}, algo.Decision{Reason: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}},
		"overload over quota":   {ds{quota, overload}, algo.Decision{Reason: algo.Overload, Limit: 8, RetryAfter: 40, NextAfter: 30, ResetAfter: 60}},
		"never over overload":   {ds{never, overload, quota}, algo.Decision{Reason: algo.Never, Limit: 4, Remaining: 4, RetryAfter: algo.Forever, ResetAfter: 60}},
		"what is off is absent": {ds{off, tight}, tight},
		"nor what is unknown":   {ds{{Allowed: true}, tight}, tight},
		"all off":               {ds{off, off}, off},
		"a shadow shows":        {ds{tight, shadowed}, algo.Decision{Allowed: true, Source: algo.SourceShadowed, Reason: algo.Quota, Limit: 10, Remaining: 3, RetryAfter: 70, NextAfter: 2, ResetAfter: 5}},
		"a shadow denies none":  {ds{shadowed, quota}, algo.Decision{Reason: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}},
	}, func(t *testing.T, c struct {
		parts ds
		want  algo.Decision
	}) {
		var reqs []algo.Request
		for _, d := range c.parts {
			reqs = append(reqs, algo.Request{Limiter: saying(d), N: 1})
		}
		lease := acquireAll(t, reqs...)
		require.Equal(t, c.want, lease.Decision)
		require.Len(t, lease.Parts(), len(c.parts))
		for i, p := range lease.Parts() {
			if c.parts[i].Source != algo.SourceShadowed || lease.Allowed {
				require.Equal(t, c.parts[i].Allowed, p.Allowed)
			}
		}
	})
}

func TestParts(t *testing.T) {
	a, b := bucket(algo.PerHour(5)), bucket(algo.PerHour(7))
	lease := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 3})
	want := lease.Parts()
	require.Equal(t, []int64{3, 4}, []int64{want[0].Remaining, want[1].Remaining})
	want[0].Remaining = 77
	require.NotEqual(t, want, lease.Parts(), "the caller's copy")
	lease.Release(algo.Succeeded)
	require.Nil(t, lease.Parts())

	denied := acquireAll(t, algo.Request{Limiter: a, N: 2}, algo.Request{Limiter: b, N: 6})
	require.Equal(t, []bool{true, false}, verdicts(denied.Parts()))
	denied.Settle(1)
	require.Len(t, denied.Parts(), 2)
	denied.Release(algo.Canceled)
	require.Nil(t, denied.Parts())
	require.Equal(t, int64(3), peek(t, a, "").Remaining)

	single := must(t, a, "", 1)
	require.Nil(t, single.Parts())
	require.Nil(t, new(algo.Lease).Parts())
}

func TestAllIsOneKeyUnderSeveralLimits(t *testing.T) {
	second, hour, day := bucket(algo.PerSecond(10)), bucket(algo.PerHour(15)), bucket(algo.PerDay(100))
	l := algo.All(second, algo.All(hour, algo.NewSwitch(day)))
	lease := must(t, l, "k", 4)
	require.True(t, lease.Allowed)
	require.Len(t, lease.Parts(), 3, "an All of an All is one All")
	require.Equal(t, int64(6), lease.Remaining)
	lease = must(t, l, "k", 12)
	require.Equal(t, algo.Never, lease.Reason)
	require.Equal(t, []bool{false, false, true}, verdicts(lease.Parts()))
	require.Equal(t, []int64{10, 15, 100}, []int64{lease.Parts()[0].Limit, lease.Parts()[1].Limit, lease.Parts()[2].Limit})
	require.Equal(t, int64(11), peek(t, hour, "k").Remaining)

	d, ok := algo.Describe(l)
	require.True(t, ok)
	require.Equal(t, algo.Description{Quota: 10, Window: time.Second}, d)
	_, ok = algo.Describe(algo.All(broken, broken))
	require.False(t, ok)

	_, err := l.Acquire(bg, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	_, err = algo.All(second, broken).Acquire(bg, "k", 1)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "request 2 of 2")
	require.Same(t, second, algo.All(second))
	require.PanicsWithValue(t, "algo: All: no limiters", func() { algo.All() })
	require.PanicsWithValue(t, "algo: All: the limiter is nil", func() { algo.All(second, nil) })
}

func TestAcquireAllOfAll(t *testing.T) {
	a, b, c := bucket(algo.PerHour(5)), bucket(algo.PerHour(3)), bucket(algo.PerHour(9))
	both := algo.All(a, b)
	lease := acquireAll(t, algo.Request{Limiter: both, N: 2}, algo.Request{Limiter: c, N: 1})
	require.True(t, lease.Allowed)
	require.Len(t, lease.Parts(), 2, "one for each request")
	require.Equal(t, int64(3), lease.Parts()[0].Limit)
	require.Equal(t, int64(8), lease.Parts()[1].Remaining)
	lease.Release(algo.Canceled)
	require.Equal(t, int64(5), peek(t, a, "").Remaining)

	// The same, where the composition cannot be taken apart.
	require.True(t, c.Allow("", 9))
	lease = acquireAll(t, algo.Request{Limiter: c, N: 1}, algo.Request{Limiter: algo.Shadow(both), N: 4})
	require.False(t, lease.Allowed)
	require.Equal(t, algo.SourceShadowed, lease.Parts()[1].Source)
	require.Equal(t, algo.Never, lease.Parts()[1].Reason)
	require.Equal(t, int64(3), peek(t, b, "").Remaining)
}
