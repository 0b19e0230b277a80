package algo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
