package migrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/sluice-go/sluice/algo"
)

func TestXTimeRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.NewLimiter(10, 20)
		users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
		require.Equal(t, admitted(30, func() bool { return l.Allow() }),
			admitted(30, func() bool { return users.Allow("", 1) }))

		slow := rate.NewLimiter(rate.Every(time.Minute), 1)
		slowly := algo.Must(algo.NewTokenBucket(algo.Every(time.Minute), algo.Burst(1)))
		require.Equal(t, slow.AllowN(time.Now(), 1), slowly.Allow("", 1))

		began := time.Now()
		err := l.Wait(ctx)
		before := time.Since(began)
		require.True(t, users.Allow("", 1)) // what came in meanwhile
		began = time.Now()
		lease, err2 := algo.Wait(ctx, users, "", 1)
		require.Equal(t, before, time.Since(began))
		require.NoError(t, err)
		require.NoError(t, err2)
		lease.Release(algo.Succeeded)

		// A reservation is an admission with a Delay.
		shaped := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.MaxWait(algo.Forever)))
		other := rate.NewLimiter(1, 1)
		for range 3 {
			r := other.ReserveN(time.Now(), 1)
			lease, err := shaped.Acquire(ctx, "", 1)
			require.NoError(t, err)
			require.Equal(t, r.Delay(), lease.Delay)
		}
		r := other.Reserve()
		r.Cancel()
		lease, _ = shaped.Acquire(ctx, "", 1)
		lease.Release(algo.Canceled)

		l.SetLimit(50)
		l.SetBurst(100)
		require.NoError(t, users.SetRate(algo.PerSecond(50)))
		require.NoError(t, users.SetBurst(100))
		time.Sleep(time.Hour)
		left := algo.Must(users.Acquire(ctx, "", 0)).Remaining
		require.Equal(t, int64(l.Tokens()), left)
	})
}
