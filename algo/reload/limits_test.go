package reload_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func spec(t *testing.T, s string) algo.Spec {
	t.Helper()
	parsed, err := algo.Parse(s)
	require.NoError(t, err)
	return parsed
}

func apply(t *testing.T, l *reload.Limits, limits map[string]string) (map[string]algo.Limiter, reload.Changes) {
	t.Helper()
	wanted := map[string]algo.Spec{}
	for name, s := range limits {
		wanted[name] = spec(t, s)
	}
	var limiters map[string]algo.Limiter
	changes, err := l.Apply(wanted, func(all map[string]algo.Limiter) error { limiters = all; return nil })
	require.NoError(t, err)
	return limiters, changes
}

func spend(t *testing.T, l algo.Limiter, n int64) algo.Decision {
	t.Helper()
	lease, err := l.Acquire(context.Background(), "k", n)
	require.NoError(t, err)
	return lease.Decision
}

// A limit that keeps its name and algorithm is the same limiter, however its
// rate and burst change, and has the promises of a new one.
func TestAdjusted(t *testing.T) {
	type change struct{ from, to string }
	tests := []change{
		{"100/s burst 20", "50/s burst 30"},
		{"100/s burst 20", "50/s"},
		{"100/s", "100/s wait 1s"},
		{"smooth-bursty 5/s burst 3", "smooth-bursty 5/s"},
		{"100/s", "50/s burst 5"},
		{"strict 10/s burst 10", "strict 5/s burst 5"},
		{"strict 5/s burst 5", "strict 10/s burst 10"},
		{"strict 10/s burst 10", "strict 5/s"},
		{"nginx 10/s burst 5", "nginx 10/s"},
		{"fixed-window 5/s", "fixed-window 9/min"},
		{"sliding-window 5/s", "sliding-window 9/min"},
	}
	to := cases.Limits("9/s", nil)
	for i, from := range cases.Limits("5/s", nil) {
		tests = append(tests, change{from, to[i]})
	}
	for _, test := range tests {
		t.Run(test.from+" to "+test.to, func(t *testing.T) {
			limiters := reload.New(reload.Config{})
			before, changes := apply(t, limiters, map[string]string{"a": test.from})
			require.Equal(t, reload.Changes{Added: 1}, changes)
			after, changes := apply(t, limiters, map[string]string{"a": test.to})
			require.Equal(t, reload.Changes{Adjusted: 1, Changed: []string{fmt.Sprintf("a: %s -> %s", spec(t, test.from), spec(t, test.to))}}, changes)
			require.Same(t, before["a"], after["a"])

			fresh, err := spec(t, test.to).New()
			require.NoError(t, err)
			want := algo.About(fresh)
			got := algo.About(after["a"])
			require.Equal(t, want, got)

			back, changes := apply(t, limiters, map[string]string{"a": test.from})
			require.Equal(t, reload.Changes{Adjusted: 1, Changed: []string{fmt.Sprintf("a: %s -> %s", spec(t, test.to), spec(t, test.from))}}, changes)
			original, err := spec(t, test.from).New()
			require.NoError(t, err)
			want = algo.About(original)
			got = algo.About(back["a"])
			require.Equal(t, want, got)
		})
	}
}

// What cannot be set begins anew, and is named.
func TestReplaced(t *testing.T) {
	for _, test := range []struct{ from, to string }{
		{"100/s", "fixed-window 100/s"},
		{"fixed-window 100/s", "fixed-window 100/s offset 10ms"},
	} {
		limiters := reload.New(reload.Config{})
		before, _ := apply(t, limiters, map[string]string{"a": test.from})
		after, changes := apply(t, limiters, map[string]string{"a": test.to})
		require.Equal(t, reload.Changes{Replaced: []string{"a"}, Changed: []string{"a: " + test.from + " -> " + test.to}}, changes, "%s to %s", test.from, test.to)
		require.NotSame(t, before["a"], after["a"])
	}
}

// Debt stays: a spent bucket is spent after the change, also if a burst is
// set, dropped, and set again.
func TestDebtOutlastsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiters := reload.New(reload.Config{})
		now, _ := apply(t, limiters, map[string]string{"a": "60/min burst 10"})
		require.True(t, spend(t, now["a"], 10).Allowed)
		for _, s := range []string{"60/min burst 10", "60/min burst 9", "60/min burst 10"} {
			now, _ = apply(t, limiters, map[string]string{"a": s, "b": "1/s"})
			require.False(t, spend(t, now["a"], 1).Allowed, s)
		}
		time.Sleep(time.Second)
		require.True(t, spend(t, now["a"], 1).Allowed)
		require.False(t, spend(t, now["a"], 1).Allowed)
	})
}

// A limit that is gone can still be asked by who holds it, and comes back
// fresh.
func TestRemoved(t *testing.T) {
	limiters := reload.New(reload.Config{})
	before, _ := apply(t, limiters, map[string]string{"a": "1/h", "b": "1/h"})
	require.True(t, spend(t, before["a"], 1).Allowed)
	_, changes := apply(t, limiters, map[string]string{"b": "1/h"})
	require.Equal(t, reload.Changes{Kept: 1, Removed: 1}, changes)
	require.False(t, spend(t, before["a"], 1).Allowed)
	after, changes := apply(t, limiters, map[string]string{"a": "1/h", "b": "1/h"})
	require.Equal(t, reload.Changes{Kept: 1, Added: 1}, changes)
	require.True(t, spend(t, after["a"], 1).Allowed)
}

// One limit that cannot be made leaves all of them as they were.
func TestAllOrNothing(t *testing.T) {
	limiters := reload.New(reload.Config{})
	now, _ := apply(t, limiters, map[string]string{"a": "5/s"})
	none := algo.Spec{Algorithm: "none", Rate: algo.PerSecond(1)}
	_, err := limiters.Apply(map[string]algo.Spec{"a": spec(t, "7/s"), "b": none, "c": none}, nil)
	require.ErrorContains(t, err, `limit "b"`)
	require.ErrorContains(t, err, `limit "c"`)
	d := algo.About(now["a"])
	require.Equal(t, int64(5), d.Quota)
	_, changes := apply(t, limiters, map[string]string{"a": "5/s"})
	require.Equal(t, reload.Changes{Kept: 1}, changes)
}

// A user of the set by name follows it, and needs the name: a limit that does not exist is an
// error when it is taken, and one that is missing later changes nothing.
func TestLimiter(t *testing.T) {
	limits := reload.New(reload.Config{})
	apply(t, limits, map[string]string{"a": "1/h"})
	_, err := limits.Limiter("b")
	require.EqualError(t, err, `reload: there is no limit "b", only ["a"]`)
	a, err := limits.Limiter("a")
	require.NoError(t, err)
	require.True(t, spend(t, a, 1).Allowed)
	apply(t, limits, map[string]string{"a": "1/h burst 2"})
	require.True(t, spend(t, a, 1).Allowed)
	require.False(t, spend(t, a, 1).Allowed)
	require.Equal(t, int64(2), algo.About(a).Quota)
	_, err = limits.Apply(map[string]algo.Spec{"b": spec(t, "1/h")}, nil)
	require.EqualError(t, err, `reload: limit "a" is in use and missing`)
	apply(t, limits, map[string]string{"a": "sliding-log 3/h"})
	require.Equal(t, int64(3), algo.About(a).Quota)
}

// TestWrapper: the limiter of a name is like the one in force.
func TestWrapper(t *testing.T) {
	algotest.RunWrapper(t, func(l algo.Limiter) algo.Limiter {
		limits := reload.New(reload.Config{New: func(string, algo.Spec) (algo.Limiter, error) { return l, nil }})
		apply(t, limits, map[string]string{"a": "1/s"})
		return algo.Must(limits.Limiter("a"))
	}, 500, func() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerSecond(5))) },
		func() algo.Limiter { return algo.Must(algo.NewFixedWindow(algo.PerSecond(5))) })
}

// One limit of several that is wrong leaves all as they are, however it was made.
func TestApplyUndoes(t *testing.T) {
	var stubborn *fixed
	limits := reload.New(reload.Config{New: func(name string, s algo.Spec) (algo.Limiter, error) {
		l, err := s.New()
		if name == "b" {
			stubborn = &fixed{RateLimiter: l}
			return stubborn, err
		}
		return l, err
	}})
	now, _ := apply(t, limits, map[string]string{"a": "5/s", "b": "5/s", "c": "5/s"})
	_, err := limits.Apply(map[string]algo.Spec{"a": spec(t, "7/s"), "b": spec(t, "7/s"), "c": spec(t, "7/s")}, nil)
	require.ErrorIs(t, err, errFixed)
	for name, l := range now {
		require.Equal(t, int64(5), algo.About(l).Quota, name)
	}
}

var errFixed = errors.New("it stays")

// fixed is a limiter that cannot be changed.
type fixed struct{ *algo.RateLimiter }

func (*fixed) SetSpec(algo.Spec) error { return errFixed }
