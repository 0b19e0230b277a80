package migrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/ratelimit"

	"github.com/sluice-go/sluice/algo"
)

func TestUber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rl := ratelimit.New(10, ratelimit.WithoutSlack)
		pacer := algo.Must(algo.NewPacer(algo.PerSecond(10), algo.MaxWait(algo.Forever)))

		began := time.Now()
		for range 5 {
			rl.Take()
		}
		before := time.Since(began)
		began = time.Now()
		for range 5 {
			lease, err := algo.Wait(ctx, pacer, "", 1)
			require.NoError(t, err)
			lease.Release(algo.Succeeded)
		}
		require.Equal(t, before, time.Since(began))

		slack := ratelimit.New(10, ratelimit.WithSlack(3))
		slacking := algo.Must(algo.NewPacer(algo.PerSecond(10), algo.Slack(3), algo.MaxWait(algo.Forever)))
		slack.Take()
		lease := algo.Must(slacking.Acquire(ctx, "", 4))
		require.Zero(t, lease.Delay)

		minutes := ratelimit.New(100, ratelimit.Per(time.Minute))
		minutely := algo.Must(algo.NewPacer(algo.PerMinute(100), algo.Slack(10), algo.MaxWait(algo.Forever)))
		minutes.Take()
		require.NotNil(t, minutely)

		require.NotNil(t, ratelimit.NewUnlimited())
		require.NotNil(t, algo.Unlimited())
	})
}
