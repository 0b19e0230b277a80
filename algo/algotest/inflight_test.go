package algotest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
)

// semaphore passes itself as the Releaser of each answer, which is the shortest way to write it.
type semaphore struct {
	limit, inFlight atomic.Int64
	fill            bool
}

func (s *semaphore) Acquire(_ context.Context, key string, n int64) (lease algo.Lease, err error) {
	limit, inFlight := s.limit.Load(), s.inFlight.Add(n)
	if lease.Allowed = n == 0 || inFlight <= limit; !lease.Allowed {
		inFlight = s.inFlight.Add(-n)
		lease.Reason, lease.RetryAfter = algo.Overload, time.Second
	}
	if n > limit {
		lease.Reason, lease.RetryAfter = algo.Never, algo.Forever
	}
	lease.Limit, lease.Remaining = limit, max(limit-inFlight, 0)
	if s.fill {
		*algo.FillLease(&lease, s) = algo.Handle{Key: key, N: n}
		return lease, nil
	}
	return algo.NewLease(lease.Decision, s, algo.Handle{Key: key, N: n}), nil
}

// About says that all keys have the slots in common.
func (s *semaphore) About() algo.Description {
	return algo.Description{Quota: s.limit.Load(), Unit: algo.ConcurrentRequests, Shared: true, NeedsRelease: true}
}

func (s *semaphore) Release(h algo.Handle, _ algo.Outcome) { s.inFlight.Add(-h.N) }
func (s *semaphore) Settle(h algo.Handle, actual int64)    { s.inFlight.Add(actual - h.N) }

// TestC1_RunInFlight: limiters of all kinds pass, those that pass a Releaser on a denial too.
func TestC1_RunInFlight(t *testing.T) {
	for name, fill := range map[string]bool{"NewLease": false, "FillLease": true} {
		t.Run(name, func(t *testing.T) {
			algotest.RunInFlight(t, func(limit int) (algo.Limiter, error) {
				s := &semaphore{fill: fill}
				s.limit.Store(int64(limit))
				return s, nil
			})
		})
	}
	t.Run("Fixed", func(t *testing.T) {
		algotest.RunInFlight(t, func(limit int) (algo.Limiter, error) { return adaptive.New(adaptive.Fixed(limit)) })
	})
	t.Run("FixedPerKey", func(t *testing.T) {
		algotest.RunInFlight(t, func(limit int) (algo.Limiter, error) { return adaptive.PerKey(limit) })
	})
}
