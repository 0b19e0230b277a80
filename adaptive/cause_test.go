package adaptive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// deniedFor acquires until a request is denied for a cause, and returns the limiter's one line.
func deniedFor(ctx context.Context, t *testing.T, l *adaptive.Limiter, key, want string) string {
	t.Helper()
	for range 20_000 {
		lease, err := l.Acquire(ctx, key, 1)
		require.NoError(t, err)
		if !lease.Allowed {
			require.Equal(t, want, lease.Cause.String())
			require.Contains(t, l.Explain().Denied.String(), want)
			return l.Explain().String()
		}
	}
	t.Fatal("nothing is denied")
	return ""
}

// TestCauses: each denial says why, and Explain says it in words.
func TestCauses(t *testing.T) {
	sheddable := adaptive.WithClass(background, adaptive.Sheddable)
	for want, deny := range map[string]func(t *testing.T) string{
		"limit": func(t *testing.T) string {
			return deniedFor(background, t, newLimiter(t, adaptive.Fixed(1)), "", "limit")
		},
		"queue": func(t *testing.T) string {
			l := newLimiter(t, adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(1, time.Second)))
			return deniedFor(background, t, l, "", "queue")
		},
		"deadline": func(t *testing.T) string {
			ctx, cancel := context.WithDeadline(background, time.Now())
			defer cancel()
			return deniedFor(ctx, t, newLimiter(t, adaptive.Fixed(1)), "", "deadline")
		},
		"processor": func(t *testing.T) string {
			m := newModel()
			l := m.limiter(t, adaptive.RunQueue(m.option()))
			m.serve(t, l, 5*time.Millisecond, 3, 3*time.Second)
			m.runnable = 1000
			return deniedFor(background, t, l, "", "processor")
		},
		"priority": func(t *testing.T) string {
			l := newLimiter(t, gated(8), adaptive.WithPriorities())
			held := fill(t, l, 9)
			for range 8 {
				acquire(t, l, "", 1)
			}
			releaseAll(held[:3], algo.Succeeded)
			return deniedFor(sheddable, t, l, "", "priority")
		},
		"hang": func(t *testing.T) string {
			l := newLimiter(t, adaptive.Sojourn())
			calls(t, l, 3000, time.Millisecond, algo.Succeeded)
			arrivals(t, l, 3*time.Second, 0, algo.Succeeded)
			return deniedFor(background, t, l, "", "hang")
		},
		"latency": func(t *testing.T) string {
			l := newLimiter(t, adaptive.Sojourn())
			calls(t, l, 3000, time.Millisecond, algo.Succeeded)
			pool := make(chan struct{}, 4)
			for range 3000 { // four connections of 50 ms, at twelve times what they can do
				go func() {
					if lease := acquire(t, l, "", 1); lease.Allowed {
						pool <- struct{}{}
						time.Sleep(50 * time.Millisecond)
						<-pool
						lease.Release(algo.Succeeded)
					}
				}()
				time.Sleep(time.Millisecond)
			}
			line := deniedFor(background, t, l, "", "latency")
			time.Sleep(time.Minute)
			return line
		},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { require.Contains(t, deny(t), " "+want) })
		})
	}
	require.Equal(t, "17 latency, 3 never", adaptive.Denials{Latency: 17, Never: 3}.String())
	require.Equal(t, "none", adaptive.Denials{}.String())
}

// TestPrioritiesNeedAQueue where a slot in use cannot be lent.
func TestPrioritiesNeedAQueue(t *testing.T) {
	queue := adaptive.WithQueue(adaptive.CoDel(100, 0, 0))
	for name, option := range map[string]adaptive.Option{"classes": adaptive.WithPriorities(), "shares": adaptive.WithFairShares(nil)} {
		for _, s := range []func() adaptive.Strategy{
			func() adaptive.Strategy { return adaptive.Fixed(10) },
			func() adaptive.Strategy { return adaptive.Min(adaptive.Default(), adaptive.Fixed(10)) },
			adaptive.Sojourn,
		} {
			_, err := adaptive.New(s(), option)
			require.ErrorContains(t, err, "need WithQueue with this strategy", name)
			_, err = adaptive.New(s(), option, queue)
			require.NoError(t, err, name)
		}
		for _, s := range []adaptive.Strategy{adaptive.Default(), adaptive.RunQueue(), gated(10)} {
			_, err := adaptive.New(s, option)
			require.NoError(t, err, name)
		}
	}
}

// TestPrioritiesServeAsMuch: in a queue, classes cost a limit of any size at most 3 points of what
// it serves at twice its capacity.
func TestPrioritiesServeAsMuch(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 100; n++ {
		without := servedAt(t, n)
		with := servedAt(t, n, adaptive.WithPriorities())
		require.GreaterOrEqual(t, with, without-.03, fmt.Sprint("of ", n, " slots"))
	}
}

// servedAt is the served share of requests of 10 ms at twice the capacity of n slots.
func servedAt(t *testing.T, n int, opts ...adaptive.Option) (share float64) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 4000
		l := newLimiter(t, adaptive.Fixed(n), append(opts, adaptive.WithQueue(adaptive.CoDel(2*n, 0, 0)))...)
		chance := rand.New(rand.NewPCG(1, uint64(n)))
		var work sync.WaitGroup
		var served atomic.Int64
		for range requests {
			time.Sleep(time.Duration(chance.ExpFloat64() * float64(5*time.Millisecond) / float64(n)))
			ctx := adaptive.WithClass(background, adaptive.Class(chance.IntN(5)))
			took := time.Duration(chance.ExpFloat64() * float64(10*time.Millisecond))
			work.Go(func() {
				lease, err := l.Acquire(ctx, "", 1)
				if err == nil && lease.Allowed {
					time.Sleep(took)
					lease.Release(algo.Succeeded)
					served.Add(1)
				}
			})
		}
		work.Wait()
		share = float64(served.Load()) / requests
	})
	return share
}
