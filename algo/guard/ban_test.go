package guard_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/meter"
)

// provoke is denied until it is banned.
func provoke(t require.TestingT, e *guard.Ban, key string, denials int) {
	for i := range denials {
		require.Zero(t, e.Banned(key), "after %d denials", i)
		require.False(t, must(t, e, key, 1).Allowed)
	}
	require.Positive(t, e.Banned(key))
}

func TestBanDoublesAndDecays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerDay(1))
		e := algo.Must(guard.NewBan(inner, algo.PerMinute(3), time.Minute, 5*time.Minute))
		require.True(t, must(t, e, "k", 1).Allowed)
		for _, want := range []time.Duration{1, 2, 4, 5, 5} {
			provoke(t, e, "k", 3)
			require.Equal(t, want*time.Minute, e.Banned("k"))
			time.Sleep(want*time.Minute - 1)
			require.Equal(t, time.Duration(1), e.Banned("k"))
			time.Sleep(time.Nanosecond)
			require.Zero(t, e.Banned("k"))
		}
		require.Equal(t, 1, e.Len())
		// The level falls after 5, 4, 2 and 1 minutes.
		for _, c := range []struct{ idle, want time.Duration }{
			{5*time.Minute - 1, 5 * time.Minute},
			{5 * time.Minute, 5 * time.Minute}, // level 3, and the next is 4
			{5*time.Minute + 4*time.Minute, 4 * time.Minute},
			{4*time.Minute + 2*time.Minute + time.Minute, time.Minute},
			{time.Minute, time.Minute},
		} {
			time.Sleep(c.idle)
			provoke(t, e, "k", 3)
			require.Equal(t, c.want, e.Banned("k"), "after %v", c.idle)
			time.Sleep(c.want)
		}
		time.Sleep(time.Minute + 1)
		require.Zero(t, e.Len(), "all is forgotten")
	})
}

// TestBanRestartsTheCount: the denials of the period in which a ban
// began are counted from the first one after it.
func TestBanRestartsTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := algo.Must(guard.NewBan(bucket(algo.PerDay(1)), algo.PerMinute(3), time.Second, time.Second))
		require.True(t, must(t, e, "k", 1).Allowed)
		provoke(t, e, "k", 3)
		time.Sleep(50 * time.Second)
		require.False(t, must(t, e, "k", 1).Allowed)
		time.Sleep(30 * time.Second) // the period of the first denials is over
		provoke(t, e, "k", 2)
	})
}

func TestBanDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerHour(2))
		e := algo.Must(guard.NewBan(inner, algo.PerMinute(2), time.Hour, 2*time.Hour))
		held := must(t, e, "k", 2)
		require.True(t, held.Allowed)
		require.Equal(t, 30*time.Minute, must(t, e, "k", 1).RetryAfter, "the limiter's")
		require.Equal(t, time.Hour, must(t, e, "k", 1).RetryAfter, "the ban's, at once")
		held.Release(algo.Canceled)
		require.Equal(t, int64(2), peek(t, inner, "k").Remaining, "released below the ban")

		time.Sleep(10 * time.Minute)
		left := 50 * time.Minute
		want := algo.Decision{Reason: algo.Banned, Limit: 2, RetryAfter: left, NextAfter: left, ResetAfter: left}
		for n := range int64(3) {
			require.Equal(t, want, must(t, e, "k", n).Decision, "n = %d", n)
		}
		lease := acquireAll(t, algo.Request{Limiter: bucket(algo.PerHour(5)), N: 1}, algo.Request{Limiter: e, Key: "k", N: 1})
		require.Equal(t, want, lease.Parts()[1])
		require.Equal(t, left, lease.RetryAfter)
		require.True(t, must(t, e, "other", 1).Allowed)

		e.Reset("k")
		require.Zero(t, e.Banned("k"))
		require.True(t, must(t, e, "k", 2).Allowed)
		provoke(t, e, "k", 2)
		require.Equal(t, time.Hour, e.Banned("k"), "from the beginning")
	})
}

// Denials count within one period, and only those for the quota.
func TestBanCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerDay(1))
		e := algo.Must(guard.NewBan(inner, algo.PerMinute(3), time.Hour, time.Hour))
		must(t, e, "k", 1)
		must(t, e, "", 1)
		for range 5 {
			must(t, e, "k", 1)
			must(t, e, "k", 1)
			time.Sleep(time.Minute)
		}
		require.Zero(t, e.Banned("k"), "two in a period")
		for range 10 {
			require.Equal(t, algo.Never, must(t, e, "k", 99).Reason)
			require.Equal(t, algo.Quota, must(t, e, "", 1).Reason)
		}
		require.Zero(t, e.Banned("k"), "a cost that never fits does not count")
		require.Zero(t, e.Banned(""), "all callers share the empty key")
		e.Reset("")

		over := algo.Must(guard.NewBan(saying(algo.Decision{Reason: algo.Overload}), algo.PerMinute(1), time.Hour, time.Hour))
		must(t, over, "k", 1)
		require.Zero(t, over.Banned("k"), "overload does not count")
		failing := algo.Must(guard.NewBan(broken, algo.PerMinute(1), time.Hour, time.Hour))
		_, err := failing.Acquire(bg, "k", 1)
		require.ErrorIs(t, err, errBroken)
		require.Zero(t, failing.Banned("k"))

		// Denied by another limit, the ban's own limiter is only peeked.
		for range 10 {
			acquireAll(t, algo.Request{Limiter: inner, Key: "k", N: 1}, algo.Request{Limiter: e, Key: "k", N: 1})
		}
		require.Zero(t, e.Banned("k"))
	})
}

// More keys than there is room for: none is banned for another, and those that
// are stay banned.
func TestBanFlood(t *testing.T) {
	e := algo.Must(guard.NewBan(saying(algo.Decision{Reason: algo.Quota}), algo.PerHour(2), time.Hour, time.Hour, algo.MaxKeys(8)))
	provoke(t, e, "first", 2)
	for i := range 5000 {
		key := "flood-" + strconv.Itoa(i)
		must(t, e, key, 1)
		require.Zero(t, e.Banned(key))
	}
	require.Positive(t, e.Banned("first"))
	require.Positive(t, e.Overflowed())
	require.Zero(t, e.Banned("bystander"))
}

// Of many denials at once exactly one brings the ban: it does not double.
func TestBanOfConcurrentDenials(t *testing.T) {
	for range 50 {
		e := algo.Must(guard.NewBan(saying(algo.Decision{Reason: algo.Quota}), algo.PerMinute(40), time.Hour, 20*time.Hour))
		var banned atomic.Int64
		group(8, func(int) {
			for range 5 {
				if lease, _ := e.Acquire(bg, "k", 1); lease.RetryAfter > 0 {
					banned.Add(1)
				}
			}
		})
		require.Equal(t, int64(1), banned.Load(), "the fortieth")
		require.LessOrEqual(t, e.Banned("k"), time.Hour)
	}
}

func TestBanValidation(t *testing.T) {
	l := bucket(algo.PerHour(1))
	for _, c := range []struct {
		says         string
		denials      algo.Rate
		ban, longest time.Duration
		opts         []algo.Option
	}{
		{"denials: count is 0, want 1 to 1048575", algo.PerHour(0), 1, 1, nil},
		{"denials: count is 1048576, want 1 to 1048575", algo.PerHour(1 << 20), 1, 1, nil},
		{"denials: period is 0s", algo.Per(1, 0), 1, 1, nil},
		{"denials: period is 999.999µs", algo.Per(1, 999999), 1, 1, nil},
		{"first ban is 0s, want more than 0", algo.PerHour(1), 0, 1, nil},
		{"first ban is -1ns", algo.PerHour(1), -1, 1, nil},
		{"longest ban is 1s, want 2s (the first ban) or more", algo.PerHour(1), 2 * time.Second, time.Second, nil},
		{"longest ban is 2160h0m0.000000001s, want at most 2160h0m0s", algo.PerHour(1), 1, 90*24*time.Hour + 1, nil},
		{"ban: does not take the option Burst", algo.PerHour(1), 1, 1, []algo.Option{algo.Burst(3)}},
		{"ban: max keys is 0", algo.PerHour(1), 1, 1, []algo.Option{algo.MaxKeys(0)}},
	} {
		_, err := guard.NewBan(l, c.denials, c.ban, c.longest, c.opts...)
		require.ErrorContains(t, err, c.says)
	}
	require.PanicsWithValue(t, "guard: NewBan: the limiter is nil", func() {
		_, _ = guard.NewBan(nil, algo.PerHour(1), 1, 1)
	})
}

// For any lengths: a ban lasts at least the first and at most the longest, the
// next one at once is its double or the longest, and idling never lengthens.
func TestBanProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			first := time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "first"))
			longest := time.Duration(rapid.Int64Range(int64(first), int64(90*24*time.Hour)).Draw(t, "longest"))
			e := algo.Must(guard.NewBan(saying(algo.Decision{Reason: algo.Quota}), algo.PerMinute(1), first, longest))
			last := time.Duration(0)
			for range rapid.IntRange(1, 12).Draw(t, "bans") {
				idle := time.Duration(rapid.Int64Range(0, int64(2*longest)).Draw(t, "idle"))
				time.Sleep(idle)
				provoke(t, e, "k", 1)
				ban := e.Banned("k")
				require.GreaterOrEqual(t, ban, first)
				require.LessOrEqual(t, ban, min(longest, max(2*last, first)))
				if idle < last {
					require.Equal(t, min(longest, 2*last), ban)
				}
				time.Sleep(ban)
				require.Zero(t, e.Banned("k"))
				last = ban
			}
		})
	})
}

// Three denials within a minute ban a caller for ten minutes, next time for
// twenty, and for a day at most.
func ExampleBan() {
	limiter, err := guard.NewBan(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))),
		algo.PerMinute(3), 10*time.Minute, 24*time.Hour)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		lease, _ := limiter.Acquire(context.Background(), "mallory", 1)
		fmt.Println(lease.Allowed, lease.RetryAfter.Round(time.Minute))
		lease.Release(algo.Succeeded)
	}
	limiter.Reset("mallory")
	fmt.Println(limiter.Banned("mallory"))
	// Output:
	// true 0s
	// false 1m0s
	// false 1m0s
	// false 10m0s
	// false 10m0s
	// 0s
}

// TestBanCountsNoBans: denials by a ban that another part of the program has set, such
// as a limit on Redis, cause no further ban: when it is lifted the key is free.
func TestBanCountsNoBans(t *testing.T) {
	banned := saying(algo.Decision{Reason: algo.Banned, RetryAfter: time.Hour})
	b := algo.Must(guard.NewBan(banned, algo.PerMinute(3), time.Minute, time.Hour))
	for range 10 {
		require.Equal(t, algo.Banned, must(t, b, "k", 1).Reason)
	}
	require.Zero(t, b.Banned("k"))
}

// TestBanOfDividedRequests: a caller that takes only fitting units is not banned for asking
// for more.
func TestBanOfDividedRequests(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"alone":  func(l algo.Limiter) algo.Limiter { return l },
		"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(bucket(algo.PerSecond(100)), l) },
		"by key": func(l algo.Limiter) algo.Limiter {
			return algo.ByKey(func(context.Context, string) algo.Limiter { return algo.All(l) })
		},
	} {
		t.Run(name, func(t *testing.T) { testDividedRequests(t, wrap) })
	}
}

func testDividedRequests(t *testing.T, wrap func(algo.Limiter) algo.Limiter) {
	synctest.Test(t, func(t *testing.T) {
		ban := wrap(algo.Must(guard.NewBan(bucket(algo.PerSecond(4), algo.Burst(10)), algo.PerMinute(3), time.Hour, time.Hour)))
		for range 20 {
			_, units, err := meter.AtMost(t.Context(), ban, "a", 10)
			require.NoError(t, err)
			require.GreaterOrEqual(t, units, int64(4))
			time.Sleep(time.Second)
		}
		require.True(t, must(t, ban, "b", 6).Allowed)
		for range 20 {
			m, err := meter.Start(t.Context(), ban, "b", 0, 10)
			require.NoError(t, err)
			d, err := m.Reserve(t.Context(), 4)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			m.Use(4)
			m.Close()
			time.Sleep(time.Second)
		}
		require.True(t, must(t, ban, "a", 10).Allowed)
		for range 2 {
			require.NotEqual(t, algo.Banned, must(t, ban, "a", 10).Reason)
		}
		require.Equal(t, algo.Banned, must(t, ban, "a", 10).Reason, "a denied request counts")
	})
}
