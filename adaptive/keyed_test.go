package adaptive_test

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

func perKey(t testing.TB, n int, opts ...adaptive.Option) *adaptive.KeyedLimiter {
	t.Helper()
	k, err := adaptive.PerKey(n, opts...)
	require.NoError(t, err)
	return k
}

func TestPerKeyCountsEachKey(t *testing.T) {
	k := perKey(t, 2)
	a, b := acquire(t, k, "a", 1), acquire(t, k, "a", 1)
	require.True(t, a.Allowed && b.Allowed)
	denied := acquire(t, k, "a", 1)
	require.False(t, denied.Allowed)
	require.Equal(t, algo.Quota, denied.Reason, "this key is at its limit")
	require.Positive(t, denied.RetryAfter)
	for _, other := range []string{"b", "", "A", "a "} {
		lease := acquire(t, k, other, 2)
		require.True(t, lease.Allowed, "%q", other)
		lease.Release(algo.Succeeded)
	}
	require.Equal(t, 2, k.InFlight("a"))
	require.Equal(t, 1, k.Len())
	a.Release(algo.Failed)
	a.Release(algo.Failed)
	require.Equal(t, 1, k.InFlight("a"))
	b.Release(algo.Canceled)
	require.Zero(t, k.Len(), "a key without units in flight is removed")
}

func TestPerKeyCosts(t *testing.T) {
	k := perKey(t, 10)
	_, err := k.Acquire(background, "a", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.Equal(t, algo.Never, acquire(t, k, "a", 11).Reason)
	require.Equal(t, algo.Never, acquire(t, k, "a", math.MaxInt64).Reason)
	peek := acquire(t, k, "a", 0)
	require.True(t, peek.Allowed)
	require.Equal(t, int64(10), peek.Remaining)
	require.Zero(t, k.Len(), "a peek takes no slot")

	lease := acquire(t, k, "a", 4)
	require.Equal(t, int64(6), lease.Remaining)
	for _, actual := range []int64{7, 0, 12, math.MaxInt64, 1} {
		lease.Settle(actual)
		require.Equal(t, int(min(actual, 1<<40, math.MaxInt)), k.InFlight("a"))
	}
	lease.Release(algo.Succeeded)
	require.Zero(t, k.Len())
}

// TestM1_PerKeyIsBounded: at most MaxKeys keys, and none with units in flight is
// removed.
func TestM1_PerKeyIsBounded(t *testing.T) {
	const most = 1000
	k := perKey(t, 1, adaptive.WithMaxKeys(most))
	var held []algo.Lease
	for i := range 10 * most {
		lease := acquire(t, k, strconv.Itoa(i), 1)
		require.Equal(t, i < most, lease.Allowed)
		if !lease.Allowed {
			require.Equal(t, algo.Overload, lease.Reason, "the key itself is below its limit")
			require.Positive(t, lease.RetryAfter)
			continue
		}
		held = append(held, lease)
	}
	require.Equal(t, most, k.Len())
	for i := range most {
		require.False(t, acquire(t, k, strconv.Itoa(i), 1).Allowed, "key %d has a unit in flight", i)
	}
	releaseAll(held, algo.Succeeded)
	require.Zero(t, k.Len())
}

func TestPerKeyLimitOf(t *testing.T) {
	k := perKey(t, 2, adaptive.WithLimitOf(func(_ context.Context, key string) int {
		return map[string]int{"gold": 5, "odd": -1, "common": -1, "none": 0}[key]
	}))
	for key, want := range map[string]int{"gold": 5, "odd": 2, "common": 2, "none": 0, "unknown": 0} {
		n := 0
		for acquire(t, k, key, 1).Allowed {
			n++
		}
		require.Equal(t, want, n, key)
	}
	denied := acquire(t, k, "none", 1)
	require.Equal(t, algo.Never, denied.Reason)
	require.Equal(t, algo.Forever, denied.RetryAfter)
	require.True(t, acquire(t, k, "none", 0).Allowed, "a peek")
	require.Zero(t, algo.About(k).Quota, "keys have different limits")
	d := algo.About(perKey(t, 3))
	require.Equal(t, algo.Description{Quota: 3, Unit: algo.ConcurrentRequests, NeedsRelease: true}, d)
}

func TestPerKeyRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := perKey(t, 4)
		for range 500 {
			lease := acquire(t, k, "a", 1)
			time.Sleep(200 * time.Millisecond)
			lease.Release(algo.Succeeded)
		}
		for range 4 {
			acquire(t, k, "a", 1)
		}
		require.InDelta(t, 50*time.Millisecond, acquire(t, k, "a", 1).RetryAfter, 1e6)
		require.InDelta(t, 200*time.Millisecond, acquire(t, k, "a", 4).RetryAfter, 1e6)
	})
}

func TestPerKeyErrors(t *testing.T) {
	for _, row := range []struct {
		n    int
		opts []adaptive.Option
		want string
	}{
		{0, nil, "limit is 0"},
		{-1, nil, "limit is -1"},
		{1, []adaptive.Option{adaptive.WithMaxKeys(0)}, "max keys is 0"},
		{1, []adaptive.Option{adaptive.WithLimits(1, 2)}, "PerKey: does not take the option WithLimits, only WithMaxKeys, WithLimitOf"},
	} {
		_, err := adaptive.PerKey(row.n, row.opts...)
		require.ErrorContains(t, err, row.want)
	}
}

// TestPerKeyAgainstAMap compares random calls with counts in a map.
func TestPerKeyAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, maxKeys := rapid.Int64Range(1, 5).Draw(t, "limit"), rapid.IntRange(1, 4).Draw(t, "keys")
		k, err := adaptive.PerKey(int(limit), adaptive.WithMaxKeys(maxKeys))
		require.NoError(t, err)
		type out struct {
			key   string
			n     int64
			lease *algo.Lease
		}
		var outs []out
		counts := map[string]int64{}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				key, n := rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "key"), rapid.Int64Range(0, 6).Draw(t, "n")
				lease, err := k.Acquire(background, key, n)
				require.NoError(t, err)
				fits := n == 0 || counts[key]+n <= limit && (counts[key] > 0 || len(counts) < maxKeys)
				require.Equal(t, fits, lease.Allowed)
				if fits && n > 0 {
					counts[key] += n
					outs = append(outs, out{key, n, &lease})
				}
			},
			"release": func(t *rapid.T) {
				if len(outs) == 0 {
					return
				}
				i := rapid.IntRange(0, len(outs)-1).Draw(t, "i")
				o := outs[i]
				outs = append(outs[:i], outs[i+1:]...)
				o.lease.Release(algo.Outcome(rapid.IntRange(0, 3).Draw(t, "outcome")))
				if counts[o.key] -= o.n; counts[o.key] == 0 {
					delete(counts, o.key)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(counts), k.Len())
				for key, n := range counts {
					require.Equal(t, int(n), k.InFlight(key))
				}
			},
		})
	})
}

// TestC1_PerKeyNothingLeaks: after panics and exits, and never above the limit.
func TestC1_PerKeyNothingLeaks(t *testing.T) {
	const limit = 3
	k := perKey(t, limit)
	var done sync.WaitGroup
	var held [5]atomic.Int64
	var most atomic.Int64
	for i := range cases.Count(10_000, 100_000) {
		run(&done, func() {
			lease, err := k.Acquire(background, strconv.Itoa(i%len(held)), 1)
			if err != nil || !lease.Allowed {
				return
			}
			raise(&most, held[i%len(held)].Add(1))
			runtime.Gosched()
			held[i%len(held)].Add(-1)
			ends[i/5%len(ends)](&lease)
		})
	}
	done.Wait()
	require.Zero(t, k.Len())
	require.LessOrEqual(t, most.Load(), int64(limit))
}

func TestPerKeyAllocations(t *testing.T) {
	var k algo.Limiter = perKey(t, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		lease, _ := k.Acquire(background, "k", 1)
		denied, _ := k.Acquire(background, "k", 1)
		denied.Release(algo.Succeeded)
		lease.Release(algo.Succeeded)
	}))
}

// TestM1_PerKeyForgets: a key without units in flight takes no memory.
func TestM1_PerKeyForgets(t *testing.T) {
	k, err := adaptive.PerKey(2)
	require.NoError(t, err)
	for i := range cases.Count(10_000, 1_000_000) {
		lease := acquire(t, k, "user-"+strconv.Itoa(i), 1)
		require.True(t, lease.Allowed)
		lease.Release(algo.Outcome(i % 4))
	}
	require.Zero(t, adaptive.Remembered(k))
}

type planKey struct{}

// The limit of a user can come from the context of the request.
func TestLimitOfContext(t *testing.T) {
	k := perKey(t, 1, adaptive.WithLimitOf(func(ctx context.Context, _ string) int {
		slots, _ := ctx.Value(planKey{}).(int)
		return slots
	}))
	pro := context.WithValue(t.Context(), planKey{}, 3)
	for _, want := range []bool{true, true, true, false} {
		lease, err := k.Acquire(pro, "alice", 1)
		require.NoError(t, err)
		require.Equal(t, want, lease.Allowed)
	}
	lease, err := k.Acquire(t.Context(), "bob", 2)
	require.NoError(t, err)
	require.False(t, lease.Allowed)
}
