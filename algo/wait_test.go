package algo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// silent denies for the quota and does not say for how long.
type silent struct{ asked int }

func (s *silent) Acquire(context.Context, string, int64) (algo.Lease, error) {
	s.asked++
	return algo.Lease{Decision: algo.Decision{Reason: algo.Quota, Allowed: s.asked > 1000}}, nil
}

// TestWaitDoesNotSpin: there is nothing to wait for where a denial does not say
// for how long it holds.
func TestWaitDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		l := new(silent)
		_, err := algo.Wait(short, l, "k", 1)
		require.ErrorIs(t, err, algo.ErrWait)
		require.Equal(t, 1, l.asked)
	})
}

// TestSleepOfADenialThatNoWaitCures: a worker that sleeps out the RetryAfter of a denial, as the guides
// say, goes on, whatever denied it and whether its context ends.
func TestSleepOfADenialThatNoWaitCures(t *testing.T) {
	in(t, map[string]func() algo.Limiter{
		"too large": func() algo.Limiter { return bucket(algo.PerSecond(1)) },
		"banned":    algo.DenyAll,
		"in flight": func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(1))) },
	}, func(t *testing.T, l func() algo.Limiter) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			over, cancel := context.WithTimeout(ctx, -time.Second)
			defer cancel()
			for _, acquired := range []context.Context{ctx, over} {
				lease, err := l().Acquire(acquired, "k", 2)
				require.NoError(t, err)
				require.ErrorIs(t, algo.Sleep(ctx, lease.RetryAfter), algo.ErrWait)
			}
			require.Zero(t, time.Since(begun))
		})
	})
}

// TestWaitForASlotWithoutAQueue: the error of a wait that cannot help says so, and what helps, and not
// that the context ends.
func TestWaitForASlotWithoutAQueue(t *testing.T) {
	full := algo.Must(adaptive.New(adaptive.Fixed(1)))
	must(t, full, "k", 1)
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := algo.Wait(within, full, "k", 1)
	require.ErrorIs(t, err, algo.ErrWait)
	require.ErrorContains(t, err, "adaptive.WithQueue")
	require.NotContains(t, err.Error(), "context")
}

// Several limits wait until all fit, in line, and nothing is charged before.
func TestWaitAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := bucket(algo.PerSecond(2)), bucket(algo.PerMinute(60))
		both := []algo.Request{{Limiter: fast, Key: "k", N: 1}, {Limiter: slow, Key: "k", N: 60}}
		must(t, slow, "k", 30)
		asked := time.Now()
		lease, err := algo.WaitAll(ctx, both...)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		require.Equal(t, 30*time.Second, time.Since(asked))
		require.Equal(t, []int64{1, 0}, []int64{lease.Parts()[0].Remaining, lease.Parts()[1].Remaining})

		short, cancel := context.WithTimeout(ctx, 59*time.Second)
		defer cancel()
		lease, err = algo.WaitAll(short, both...)
		require.ErrorIs(t, err, algo.ErrWait)
		require.Equal(t, time.Minute, lease.RetryAfter, "the denial")
		require.Equal(t, algo.Quota, lease.Parts()[1].Reason)
		require.Equal(t, int64(1), peek(t, fast, "k").Remaining, "nothing is charged")

		both[1].N = 61
		lease, err = algo.WaitAll(ctx, both...)
		require.ErrorIs(t, err, algo.ErrCost)
		require.Equal(t, algo.Never, lease.Reason)
		_, err = algo.WaitAll(ctx)
		require.ErrorContains(t, err, "algo: invalid request")
	})
}

// The denial of a Delay that the deadline cuts off says how long it was, and is given back.
func TestWaitAllCutsOffADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer := algo.Must(algo.NewPacer(algo.PerMinute(6), algo.MaxWait(time.Minute)))
		must(t, pacer, "k", 1)
		short, cancel := context.WithTimeout(ctx, 9*time.Second)
		defer cancel()
		lease, err := algo.WaitAll(short, algo.Request{Limiter: pacer, Key: "k", N: 1})
		require.ErrorIs(t, err, algo.ErrWait)
		require.False(t, lease.Allowed)
		require.Equal(t, 10*time.Second, lease.RetryAfter)
		require.Equal(t, 10*time.Second, must(t, pacer, "k", 1).Delay)
	})
}

// Wait sleeps until there is room, and fails at once where the context could
// not wait that long.
func ExampleWait() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(100), algo.Burst(1)))
	for range 3 {
		if _, err := algo.Wait(context.Background(), l, "", 1); err != nil {
			fmt.Println(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := algo.Wait(ctx, l, "", 1)
	fmt.Println(errors.Is(err, algo.ErrWait))
	// Output: true
}

// A job waits until it fits the limit of its user and the one of the service.
func ExampleWaitAll() {
	user := algo.Must(algo.NewTokenBucket(algo.PerSecond(100), algo.Burst(1)))
	service := algo.Must(algo.NewTokenBucket(algo.PerSecond(1000)))
	for range 2 {
		lease, err := algo.WaitAll(context.Background(), algo.Request{Limiter: user, Key: "alice", N: 1}, algo.Request{Limiter: service, N: 5})
		fmt.Println(lease.Allowed, err)
	}
	// Output:
	// true <nil>
	// true <nil>
}

// An adapter sleeps a Delay out, and does not begin to if the caller will be
// gone by then.
func ExampleSleep() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(algo.Sleep(ctx, time.Millisecond))
	fmt.Println(errors.Is(algo.Sleep(ctx, time.Hour), algo.ErrWait))
	// Output:
	// <nil>
	// true
}
