package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/distributed"
)

// SmoothWarmingUp passes the kit that it passes in one process.
func TestWarmingUpConformance(t *testing.T) {
	store, server := onRedis(t)
	made := 0
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		made++
		spec, err := algo.Spec{Algorithm: "smooth-warming-up", Rate: r, Warmup: r.Period / 2}.With(opts...)
		if err != nil {
			return nil, err
		}
		return store.Limiter(fmt.Sprint("warm", made), spec)
	}, algotest.Bound{RealTime: true, PayForward: true, Units: func(r algo.Rate, w time.Duration) int64 {
		return algotest.BurstPlusRate(r, w) - r.Count + 4
	}})
	requireTTL(t, server)
}

// What it does not take is an error that says what to take.
func TestWarmingUpErrors(t *testing.T) {
	store, _ := onRedis(t)
	for text, want := range map[string]string{
		"smooth-warming-up 1/s":                   "warmup is 0",
		"smooth-warming-up 1/s warmup 1s cold 1":  "cold factor is 1",
		"smooth-warming-up 1/s warmup 1s burst 2": "does not take the option Burst",
	} {
		spec, err := algo.Parse(text)
		if err == nil {
			_, err = store.Limiter("a", spec)
		}
		require.ErrorContains(t, err, want)
	}
}

// A key that is banned, or reset, takes no refund of what it was charged before.
func TestWarmingUpForgetsNothingTwice(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.Limiter("a", must[algo.Spec](t)(algo.Parse("smooth-warming-up 1/m warmup 1h wait 1000h"))))
	first := remote(t, l, "k", 5)
	require.NoError(t, l.Reset(ctx, "k"))
	remote(t, l, "k", 1)
	owed := remote(t, l, "k", 0).NextAfter
	first.Release(algo.Canceled)
	time.Sleep(50 * time.Millisecond)
	require.Greater(t, remote(t, l, "k", 0).NextAfter, owed-time.Second)
	require.NoError(t, l.Ban(ctx, "k", time.Hour))
	require.Equal(t, algo.Banned, remote(t, l, "k", 1).Reason)
}
