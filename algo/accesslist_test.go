package algo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func keySet(t require.TestingT, exact, prefixes []string) *algo.KeySet {
	s, err := algo.NewKeySet(exact, prefixes)
	require.NoError(t, err)
	return s
}

func TestAccessLists(t *testing.T) {
	keys := keySet(t, []string{"root"}, []string{"internal-", "in"})
	inner := bucket(algo.PerHour(1))
	free, barred := algo.AllowList(inner, keys), algo.DenyList(inner, keys)
	for _, key := range []string{"root", "internal-7", "internal-", "in", "inside"} {
		require.True(t, keys.Contains(key))
		for range 3 {
			require.Equal(t, algo.SourceOff, must(t, free, key, 5).Source)
		}
		for n := range int64(2) {
			d := must(t, barred, key, n).Decision
			require.False(t, d.Allowed, "n = %d", n)
			require.Equal(t, algo.Banned, d.Reason)
			require.Equal(t, algo.Forever, d.RetryAfter)
		}
		_, err := barred.Acquire(bg, key, -1)
		require.ErrorIs(t, err, algo.ErrCost)
	}
	for i, key := range []string{"roo", "roots", "i", "", "Root"} {
		require.False(t, keys.Contains(key))
		require.True(t, must(t, []algo.Limiter{free, barred}[i%2], key, 1).Allowed)
		require.Equal(t, algo.Quota, must(t, []algo.Limiter{free, barred}[i%2], key, 1).Reason)
	}

	require.NoError(t, keys.Set([]string{"other"}, nil))
	require.False(t, keys.Contains("root"))
	require.True(t, keys.Contains("other"))
	require.ErrorContains(t, keys.Set([]string{"a", ""}, nil), "key 2 of 2 is empty")
	require.ErrorContains(t, keys.Set(nil, []string{""}), "prefix 1 of 1 is empty")
	_, err := algo.NewKeySet([]string{""}, nil)
	require.Error(t, err)
	require.True(t, keys.Contains("other"), "as it was")
	require.Zero(t, testing.AllocsPerRun(100, func() { keys.Contains("internal-7") }))
}

func ExampleAllowList() {
	free, err := algo.NewKeySet([]string{"monitoring"}, []string{"internal-"})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.AllowList(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), free)
	for _, key := range []string{"internal-7", "internal-7", "alice", "alice"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Allowed, lease.Source)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// internal-7 true off
	// internal-7 true off
	// alice true local
	// alice false local
}

func ExampleDenyList() {
	banned, err := algo.NewKeySet([]string{"mallory"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.DenyList(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), banned)
	for _, key := range []string{"mallory", "alice"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Allowed, lease.Reason)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// mallory false banned
	// alice true admitted
}

func ExampleKeySet_Set() {
	keys, err := algo.NewKeySet([]string{"monitoring"}, nil)
	fmt.Println(keys.Contains("monitoring"), err)
	err = keys.Set(nil, []string{"internal-"})
	fmt.Println(keys.Contains("monitoring"), keys.Contains("internal-7"), err)
	// Output:
	// true <nil>
	// false true <nil>
}
