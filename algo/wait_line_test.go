package algo_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// 50 workers at 200/s: each waits for a turn of 50 units, a quarter of a second.
func TestWaitIsFair(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l },
		"by key": func(l algo.Limiter) algo.Limiter {
			return algo.ByKey(func(context.Context, string) algo.Limiter { return l })
		},
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(l, bucket(algo.PerSecond(1000))) },
		"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := wrap(algo.Must(algo.NewTokenBucket(algo.PerSecond(200), algo.Burst(1))))
			var mu sync.Mutex
			var waits []time.Duration
			var workers sync.WaitGroup
			for range 50 {
				workers.Go(func() {
					for range 40 {
						asked := time.Now()
						lease, err := algo.Wait(context.Background(), l, "k", 1)
						lease.Release(algo.Succeeded)
						mu.Lock()
						waits = append(waits, time.Since(asked))
						if err != nil {
							t.Error(err)
						}
						mu.Unlock()
					}
				})
			}
			workers.Wait()
			slices.Sort(waits)
			require.LessOrEqual(t, waits[len(waits)*99/100], 250*time.Millisecond, name)
			require.Equal(t, 250*time.Millisecond, waits[len(waits)-1], name)
		})
	}
}

// A request of 10 units passes among single ones, in its turn.
func TestWaitServesLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.Rate{Count: 10, Period: time.Second})
		must(t, l, "k", 10)
		stop := make(chan struct{})
		var workers sync.WaitGroup
		for range 20 {
			workers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, _ = algo.Wait(context.Background(), l, "k", 1)
					}
				}
			})
		}
		synctest.Wait()
		asked := time.Now()
		_, err := algo.Wait(context.Background(), l, "k", 10)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(asked), "20 single units, then 10")
		close(stop)
		workers.Wait()
	})
}

// In line: a request that cannot be served in time fails at once, a request that
// gives up makes room, and other keys have lines of their own.
func TestWaitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.Rate{Count: 2, Period: 2 * time.Second})
		must(t, l, "k", 2)
		asked := time.Now()
		var served []time.Duration
		var mu sync.Mutex
		var all sync.WaitGroup
		wait := func(ctx context.Context, key string, n int64) error {
			_, err := algo.Wait(ctx, l, key, n)
			if mu.Lock(); err == nil {
				served = append(served, time.Since(asked))
			}
			mu.Unlock()
			return err
		}
		canceled, cancel := context.WithCancel(context.Background())
		for i := range 5 {
			all.Go(func() {
				if i == 2 {
					if err := wait(canceled, "k", 1); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				} else if err := wait(context.Background(), "k", 1); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, row := range []struct {
			deadline time.Duration
			n        int64
		}{{5*time.Second + 999*time.Millisecond, 1}, {6 * time.Second, 2}, {time.Millisecond, 1}} {
			soon, stop := context.WithTimeout(context.Background(), row.deadline)
			require.ErrorIs(t, wait(soon, "k", row.n), algo.ErrWait)
			stop()
		}
		require.Zero(t, time.Since(asked), "at once")
		require.NoError(t, wait(context.Background(), "other", 2))
		time.Sleep(500 * time.Millisecond)
		cancel()
		in, stop := context.WithTimeout(context.Background(), 6*time.Second)
		defer stop()
		require.NoError(t, wait(in, "k", 1))
		all.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}, served)
		require.ErrorIs(t, wait(context.Background(), "k", 3), algo.ErrCost)
		require.NoError(t, wait(context.Background(), "k", 1), "the line is gone")
	})
}

// late is a context whose timer does not come in time.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

// A turn that comes after the deadline, before the timer of the context, is a denial for the quota.
func TestWaitTurnAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerSecond(1))
		must(t, l, "k", 1)
		go func() { _, _ = algo.Wait(t.Context(), l, "k", 1) }()
		synctest.Wait()
		stolen := time.AfterFunc(time.Second-1, func() { lease := must(t, l, "k", 0); lease.Settle(2) })
		defer stolen.Stop()
		lease, err := algo.Wait(late{t.Context(), time.Now().Add(2500 * time.Millisecond)}, l, "k", 1)
		require.ErrorIs(t, err, algo.ErrWait)
		require.Equal(t, algo.Quota, lease.Reason)
	})
}

// A limiter that cannot be part of a map's key has no line.
func TestWaitWithoutALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := bucket(algo.PerSecond(1))
		l := limiterFunc(inner.Acquire)
		asked := time.Now()
		for range 3 {
			_, err := algo.Wait(context.Background(), l, "k", 1)
			require.NoError(t, err)
		}
		require.Equal(t, 2*time.Second, time.Since(asked))
	})
}
