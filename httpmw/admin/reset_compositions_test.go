package admin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

// Reset is offered where a limiter that has it can be found, and then works: behind any
// wrapper, and not for a choice of which nothing is known.
func TestResetOfCompositions(t *testing.T) {
	bucket := func() *algo.RateLimiter { return algo.Must(algo.NewTokenBucket(algo.PerHour(1))) }
	choose := func(l algo.Limiter) func(context.Context, string) algo.Limiter {
		return func(context.Context, string) algo.Limiter { return l }
	}
	for name, wrap := range map[string]func(l algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l }, "switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"all": func(l algo.Limiter) algo.Limiter { return algo.All(l, bucket()) }, "failures": guard.FailuresOnly,
		"listed": func(l algo.Limiter) algo.Limiter { return algo.ByKey(choose(l), l) },
	} {
		l := bucket()
		for _, controlled := range []bool{false, true} {
			require.True(t, l.Allow("k", 1), name)
			whole := wrap(l)
			if controlled {
				whole = Control(whole)
			}
			can := abilitiesOf(whole)
			require.NotNil(t, can.reset, name)
			require.NoError(t, can.reset(t.Context(), "k"), name)
		}
	}
	for _, l := range []algo.Limiter{algo.ByKey(choose(bucket())), Control(algo.ByKey(choose(bucket()))), algo.Unlimited()} {
		require.Nil(t, abilitiesOf(l).reset)
	}
}
