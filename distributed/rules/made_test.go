package rules_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
)

// Limiters of keys and rules that are gone are closed, a few seconds later. An override
// that comes again finds what its key has spent.
func TestRulesFreeWhatTheyDoNotUse(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	l := set.Limiter("r")
	put := func(first int) {
		overrides := map[string]algo.Spec{}
		for i := range 10 {
			overrides[fmt.Sprint("u", first+i)] = spec(t, fmt.Sprint(100+first+i, "/h"))
		}
		require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "5/h"), Overrides: overrides}))
		for key := range overrides { // limiters are made when they are used
			remote(t, l, key, 0)
		}
	}
	put(0)
	require.Equal(t, int64(60), remote(t, l, "u0", 40).Remaining)
	old, _ := l.Choose(ctx, "u0")
	for first := 10; first < 50; first += 10 {
		put(first)
		require.Equal(t, 10, rules.LimitersOf(set))
	}
	require.Eventually(t, func() bool {
		_, err := old.Acquire(ctx, "u0", 0)
		return errors.Is(err, distributed.ErrClosed)
	}, 10*time.Second, 10*time.Millisecond)
	put(0)
	require.Equal(t, int64(59), remote(t, l, "u0", 1).Remaining)
	require.NoError(t, set.Delete(ctx, "r"))
	require.Zero(t, rules.LimitersOf(set))
	require.Equal(t, algo.SourceOff, acquire(t, l, "u0", 1).Source)
}

// A limiter that was just chosen still decides after its rule is gone.
func TestRulesFreeNothingAtOnce(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "5/h")}))
	chosen, _ := set.Limiter("r").Choose(ctx, "k")
	require.NoError(t, set.Delete(ctx, "r"))
	require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, "5/h")})) // loads again
	require.True(t, remote(t, chosen, "k", 1).Allowed)
}

// The empty key can have a limit of its own, as any other.
func TestOverrideOfTheEmptyKey(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "5/h"), Overrides: map[string]algo.Spec{"": spec(t, "9/h")}}))
	require.Equal(t, int64(9), remote(t, set.Limiter("r"), "", 0).Limit)
	require.Equal(t, int64(5), remote(t, set.Limiter("r"), "k", 0).Limit)
}
