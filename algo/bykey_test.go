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
	require.ErrorContains(t, err, "algo: invalid request")
	other := bucket(algo.PerHour(1))
	for _, l := range []algo.Limiter{l, algo.All(algo.Unlimited(), l), algo.Shadow(algo.Shadow(l))} {
		lease, err := algo.AcquireAll(bg, algo.Request{Limiter: other, N: 1}, algo.Request{Limiter: l, Key: "unknown", N: 1})
		if err == nil {
			require.Equal(t, algo.SourceTrial, lease.Parts()[1].Source)
			lease.Release(algo.Canceled)
			continue
		}
		require.ErrorContains(t, err, "algo: invalid request")
		require.ErrorContains(t, err, "request 2 of 2")
	}
	require.True(t, other.Allow("", 1))
	require.Zero(t, algo.About(l).Quota)
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

// chooser is a limiter of another package that only chooses.
type chooser struct{ l algo.Limiter }

func (c chooser) Choose(context.Context, string) (algo.Limiter, error) { return c.l, nil }

func (c chooser) Acquire(context.Context, string, int64) (algo.Lease, error) {
	panic("compositions acquire from the chosen limiter")
}

func TestCompositionsFollowChoosers(t *testing.T) {
	users, total := bucket(algo.PerHour(2)), bucket(algo.PerHour(3))
	lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: chooser{users}, Key: "a", N: 2}, algo.Request{Limiter: chooser{total}, Key: "a", N: 2})
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	lease, err = algo.All(algo.NewSwitch(chooser{users}), total).Acquire(t.Context(), "a", 1)
	require.NoError(t, err)
	require.False(t, lease.Allowed)
	require.EqualValues(t, 1, peek(t, total, "a").Remaining, "nothing stays charged")
}

// A method is closed for one tenant, and open for all others.
func ExampleDenyAll() {
	standard := algo.Must(algo.NewTokenBucket(algo.PerMinute(100)))
	limiter := algo.ByKey(func(_ context.Context, tenant string) algo.Limiter {
		if tenant == "suspended" {
			return algo.DenyAll()
		}
		return standard
	})
	for _, tenant := range []string{"acme", "suspended"} {
		lease := algo.Must(limiter.Acquire(context.Background(), tenant, 1))
		fmt.Println(tenant, lease.Allowed, lease.Reason)
	}
	// Output:
	// acme true admitted
	// suspended false banned
}
