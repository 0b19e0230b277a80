package migrate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/adaptive/throttle"
	"github.com/sluice-go/sluice/algo"
)

func TestKratos(t *testing.T) {
	limiter := bbr.NewLimiter()
	same := algo.Must(adaptive.New(strategy.CompatKratos()))
	better := algo.Must(adaptive.New(adaptive.Default()))

	done, err := limiter.Allow()
	require.NoError(t, err)
	done(ratelimit.DoneInfo{})
	for _, gate := range []*adaptive.Limiter{same, better} {
		lease, err := gate.Acquire(ctx, "", 1)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
	}
	_ = bbr.NewLimiter(bbr.WithCPUThreshold(900))
	_ = strategy.BBR(strategy.WithSignal(signal.CPU(signal.Threshold(0.9))))
	_ = bbr.NewLimiter(bbr.WithWindow(5*time.Second), bbr.WithBucket(50))
	gate := algo.Must(adaptive.New(strategy.CompatKratos(strategy.WithWindow(5*time.Second, 50))))
	_ = limiter.Stat()
	require.NotNil(t, gate.Explain().Strategies[0].Estimate)
}

func TestFailsafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bursty := ratelimiter.NewBursty[any](10, time.Second)
		window := algo.Must(algo.NewFixedWindow(algo.PerSecond(10)))
		require.Equal(t, admitted(15, bursty.TryAcquirePermit), admitted(15, func() bool { return window.Allow("", 1) }))

		smooth := ratelimiter.NewSmooth[any](10, time.Second)
		pacer := algo.Must(algo.NewPacer(algo.PerSecond(10), algo.MaxWait(algo.Forever)))
		began := time.Now()
		for range 3 {
			require.NoError(t, smooth.AcquirePermit(ctx))
		}
		before := time.Since(began)
		began = time.Now()
		for range 3 {
			_, err := algo.Wait(ctx, pacer, "", 1)
			require.NoError(t, err)
		}
		require.Equal(t, before, time.Since(began))

		compartment := bulkhead.New[any](2)
		fixed := algo.Must(adaptive.New(adaptive.Fixed(2)))
		require.Equal(t, admitted(3, compartment.TryAcquirePermit), admitted(3, func() bool {
			lease, err := fixed.Acquire(ctx, "", 1)
			return err == nil && lease.Allowed
		}))
		compartment.ReleasePermit()
	})
	_ = adaptivelimiter.NewWithDefaults[any]()
	_ = algo.Must(adaptive.New(strategy.Gradient2()))
	_ = adaptivethrottler.NewWithDefaults[any]()
	_ = algo.Must(throttle.New())
	_ = failsafe.With(bulkhead.New[any](2))
}
