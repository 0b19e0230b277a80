package adaptive_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// A look has the answer of Acquire for every cost: the limit that is in force says nothing about the
// largest one, and a cost may be one slot.
func TestPeekAnswersAsAcquire(t *testing.T) {
	makes := map[string]func() *adaptive.Limiter{
		"fixed": func() *adaptive.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(10))) },
		"aimd": func() *adaptive.Limiter {
			return algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 100), strategy.WithInitial(10))))
		},
		"default": func() *adaptive.Limiter {
			return algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 8)))
		},
		"min": func() *adaptive.Limiter {
			return algo.Must(adaptive.New(adaptive.Min(adaptive.Fixed(10), strategy.AIMD(adaptive.WithLimits(1, 100), strategy.WithInitial(20)))))
		},
	}
	for name, make := range makes {
		for _, held := range []int64{0, 3, 10} {
			for _, n := range []int64{0, 1, 7, 8, 10, 11, 20, 100, 101} {
				t.Run(fmt.Sprintf("%s %d in flight, %d", name, held, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l := make()
						fakes.Acquire(t, l, "", held)
						before := l.Explain().Denied
						looked, err := algo.Peek(t.Context(), l, "", n)
						require.NoError(t, err)
						require.Equal(t, before, l.Explain().Denied, "a look is no denial")
						require.Equal(t, fakes.Acquire(t, l, "", n).Decision, looked)
					})
				})
			}
		}
	}
}

func TestPeekErrors(t *testing.T) {
	l := algo.Must(adaptive.New(adaptive.Default()))
	_, err := algo.Peek(t.Context(), l, "", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	_, err = l.Peek(t.Context(), "", -1)
	require.ErrorIs(t, err, algo.ErrCost)
	require.NoError(t, l.Close())
	_, err = l.Peek(t.Context(), "", 1)
	require.ErrorIs(t, err, adaptive.ErrClosed)
}

// A cost above the limit in force fits as soon as nothing is in flight, so beside a denial it is not
// called impossible.
func TestW4_AdaptiveLimitBesideADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 100), strategy.WithInitial(10))))
		rate := fakes.Bucket(algo.PerSecond(1))
		require.True(t, rate.Allow("", 1))
		a, b := algo.Request{Limiter: rate, N: 1}, algo.Request{Limiter: work, N: 20}
		for _, reqs := range [][]algo.Request{{a, b}, {b, a}} {
			lease := fakes.AcquireAll(t, reqs...)
			require.Equal(t, algo.Quota, lease.Reason)
			require.Equal(t, time.Second, lease.RetryAfter)
		}
		lease, err := algo.WaitAll(t.Context(), a, b)
		require.NoError(t, err)
		lease.Release(algo.Succeeded)
	})
}
