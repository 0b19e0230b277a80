package algo_test

import (
	"context"
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
