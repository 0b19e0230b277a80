package adaptive_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// TestDeadlines: work that is sure to end too late is not begun: it is denied for
// good, or not at all if the caller has left.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Default())
		work := func(ctx context.Context, d time.Duration) algo.Lease {
			lease, err := l.Acquire(ctx, "", 1)
			require.NoError(t, err)
			if lease.Allowed {
				time.Sleep(d)
			}
			lease.Release(algo.Succeeded)
			return lease
		}
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		require.True(t, work(within(time.Millisecond), time.Millisecond/2).Allowed, "nothing is known")
		for range 7000 { // until that one is forgotten
			work(t.Context(), 20*time.Millisecond)
		}
		for range 10 {
			work(t.Context(), 50*time.Millisecond)
			work(t.Context(), 20*time.Millisecond)
		}
		require.True(t, work(within(21*time.Millisecond), 20*time.Millisecond).Allowed)
		before := l.Explain().Denied
		denied := work(within(15*time.Millisecond), 0)
		require.False(t, denied.Allowed)
		require.Equal(t, algo.Overload, denied.Reason)
		require.Equal(t, algo.Forever, denied.RetryAfter)
		before.Deadline++
		require.Equal(t, before, l.Explain().Denied)
		require.Zero(t, l.InFlight())

		over := within(time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		require.False(t, work(over, 0).Allowed)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Acquire(gone, "", 1)
		require.ErrorIs(t, err, context.Canceled)
		lease, err := l.Acquire(gone, "", 0)
		require.NoError(t, err, "a peek waits for nothing")
		require.True(t, lease.Allowed)
	})
}

// TestDeadlinesAfterSlowWork: slow work, at the start or by others all the time, denies fast
// work with a deadline for little more than a second; work that stays slow is begun once a second.
func TestDeadlinesAfterSlowWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, adaptive.Default())
		denials := func(n int, every, took time.Duration) (denied int) {
			for range n {
				time.Sleep(every)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				lease, err := l.Acquire(ctx, "", 1)
				require.NoError(t, err)
				if !lease.Allowed {
					denied++
				} else {
					time.AfterFunc(took, func() { lease.Release(algo.Succeeded) })
				}
				cancel()
			}
			return denied
		}
		calls(t, l, 1, 3*time.Second, algo.Succeeded)
		require.GreaterOrEqual(t, denials(5000, time.Millisecond, 3*time.Second), 4990)
		require.LessOrEqual(t, denials(20, time.Second, time.Millisecond), 2)
		for range 1000 {
			batch := acquire(t, l, "", 1)
			time.AfterFunc(10*time.Second, func() { batch.Release(algo.Succeeded) })
			time.Sleep(500 * time.Millisecond)
		}
		require.Equal(t, 1, denials(1, 0, 0), "the batch is all that has completed lately")
		for range 20 { // and it goes on
			batch := acquire(t, l, "", 1)
			time.AfterFunc(10*time.Second, func() { batch.Release(algo.Succeeded) })
			require.LessOrEqual(t, denials(1, time.Second, time.Millisecond), 1)
		}
		require.Zero(t, denials(100, 10*time.Millisecond, time.Millisecond))
		time.Sleep(10 * time.Second)
	})
}

// TestDeadlinesInAQueue: a request that would wait in the queue beyond its deadline is
// denied at once.
func TestDeadlinesInAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, strategy.Gradient2(), adaptive.WithLimits(1, 1), adaptive.WithQueue(adaptive.FIFO(10, time.Minute)))
		for range 3 {
			lease := acquire(t, l, "", 1)
			time.Sleep(100 * time.Millisecond)
			lease.Release(algo.Succeeded)
		}
		held := acquire(t, l, "", 1)
		defer held.Release(algo.Succeeded)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		lease, err := l.Acquire(ctx, "", 1)
		require.NoError(t, err)
		require.False(t, lease.Allowed)
		require.Zero(t, time.Since(start))
		lease, err = l.Acquire(noTimer{t.Context(), start.Add(time.Second)}, "", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, lease.Allowed)
		require.Equal(t, time.Second, time.Since(start), "it waits until its deadline")
	})
}

// noTimer is a context with a deadline at which nothing happens.
type noTimer struct {
	context.Context
	deadline time.Time
}

func (c noTimer) Deadline() (time.Time, bool) { return c.deadline, true }
