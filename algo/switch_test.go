package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestSwitch(t *testing.T) {
	inner := bucket(algo.PerHour(1))
	s := algo.NewSwitch(inner)
	require.True(t, s.IsOn())
	held := must(t, s, "k", 1)
	require.False(t, must(t, s, "k", 1).Allowed)

	s.Off()
	require.False(t, s.IsOn())
	for range 10 {
		lease := must(t, s, "k", 7)
		require.Equal(t, algo.Decision{Allowed: true, Source: algo.SourceOff}, lease.Decision)
		lease.Release(algo.Canceled)
	}
	_, err := s.Acquire(bg, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	held.Release(algo.Canceled)

	s.On()
	require.True(t, must(t, s, "k", 1).Allowed, "given back while it was off")
	require.False(t, must(t, s, "k", 1).Allowed)
}

// A switch that is off until a time is on from then on.
func TestSwitchOffUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := algo.NewSwitch(algo.DenyAll())
		s.OffUntil(time.Now().Add(time.Hour))
		require.True(t, must(t, s, "k", 1).Allowed)
		require.True(t, algo.About(s).Off)
		time.Sleep(time.Hour)
		require.False(t, must(t, s, "k", 1).Allowed)
		require.True(t, s.IsOn())
		s.Off()
		time.Sleep(24 * time.Hour)
		require.False(t, s.IsOn(), "without end")
	})
}

func ExampleSwitch() {
	limiter := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
	ask := func() {
		lease, _ := limiter.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Source)
		lease.Release(algo.Succeeded)
	}
	ask()
	ask()
	limiter.Off()
	ask()
	limiter.On()
	ask()
	// Output:
	// true local
	// false local
	// true off
	// false local
}

// An operator takes a limit away for an hour.
func ExampleSwitch_OffUntil() {
	limit := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerDay(1))))
	limit.OffUntil(time.Now().Add(time.Hour))
	fmt.Println(limit.IsOn())
	// Output: false
}

// An operator takes a limit away and gives it back.
func ExampleNewSwitch() {
	limit := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerDay(1))))
	ask := func() {
		lease, _ := limit.Acquire(context.Background(), "ann", 1)
		fmt.Println(limit.IsOn(), lease.Allowed, lease.Source)
	}
	ask()
	limit.Off()
	ask()
	limit.On()
	ask()
	// Output:
	// true true local
	// false true off
	// true false local
}

func ExampleUnlimited() {
	lease, _ := algo.Unlimited().Acquire(context.Background(), "alice", 1_000_000)
	fmt.Println(lease.Allowed, lease.Source)
	lease.Release(algo.Succeeded)
	// Output: true off
}
