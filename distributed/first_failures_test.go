package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
)

// Failures are paid by the plan and the credits, and then no more are admitted.
func TestFailuresOnlyOverFirst(t *testing.T) {
	s, _ := onRedis(t, distributed.WithInstances(1))
	for name, plan := range plans(t, s) { // ten units each
		credits := must[*distributed.Credits](t)(s.Credits("credits of " + name))
		require.NoError(t, credits.TopUp(ctx, "a", "1", 10))
		l := guard.FailuresOnly(prepaid.First(plan, credits))
		failures := 0
		for ; failures < 50; failures++ {
			lease := remote(t, l, "a", 1)
			if !lease.Allowed {
				break
			}
			lease.Release(algo.Failed)
		}
		require.Equal(t, 20, failures, name)
		require.Zero(t, must[int64](t)(credits.Balance(ctx, "a")), name)
	}
}

// What a request uses while Redis is away is charged to the credits once Redis is back.
func TestFirstSettlesCreditsLater(t *testing.T) {
	e := &events{}
	s, server := onRedis(t, quick(e)...)
	plan := must[*distributed.Limiter](t)(s.TokenBucket("plan", algo.PerHour(10)))
	credits := must[*distributed.Credits](t)(s.Credits("credits"))
	server.Kill()
	trip(t, plan, e)
	lease := acquire(t, prepaid.First(plan, credits), "a", 4)
	require.True(t, lease.Allowed)
	lease.Settle(30)
	lease.Release(algo.Succeeded)
	server.Restart()
	closedAgain(t, s)
	require.NoError(t, credits.TopUp(ctx, "a", "1", 100))
	require.Eventually(t, func() bool { return must[int64](t)(credits.Balance(ctx, "a")) == 80 }, time.Minute, time.Millisecond,
		"20 of the 30 units are the credits'")
}
