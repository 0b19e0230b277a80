package algo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestByKeyReturningNil(t *testing.T) {
	l := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if key == "known" {
			return bucket(algo.PerHour(1))
		}
		return nil
	})
	require.True(t, must(t, l, "known", 1).Allowed)
	_, err := l.Acquire(bg, "unknown", 1)
	require.ErrorIs(t, err, algo.ErrRequest)
	other := bucket(algo.PerHour(1))
	for _, l := range []algo.Limiter{l, algo.All(algo.Unlimited(), l), algo.Shadow(algo.Shadow(l))} {
		lease, err := algo.AcquireAll(bg, algo.Request{Limiter: other, N: 1}, algo.Request{Limiter: l, Key: "unknown", N: 1})
		if err == nil {
			require.Equal(t, algo.SourceShadowed, lease.Source)
			lease.Release(algo.Canceled)
			continue
		}
		require.ErrorIs(t, err, algo.ErrRequest)
		require.ErrorContains(t, err, "request 2 of 2")
	}
	require.True(t, other.Allow("", 1))
	_, ok := algo.Describe(l)
	require.False(t, ok)
	_, err = algo.ByKey(new(algo.Overrides).Choose).Acquire(bg, "k", 1)
	require.ErrorIs(t, err, algo.ErrRequest, "the zero Overrides")
}

// Tiers by the plan that the key begins with.
func ExampleByKey() {
	free := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	paid := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	limiter := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if strings.HasPrefix(key, "paid:") {
			return paid
		}
		return free
	})
	for _, key := range []string{"paid:alice", "bob"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Limit)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// paid:alice 1000
	// bob 10
}
